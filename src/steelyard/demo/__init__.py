"""The bundled demo data: the handbook of a fictional railway.

The folder `data` has corpus.jsonl, queries.jsonl and qrels.tsv; its README describes them and how they were judged.
"""
