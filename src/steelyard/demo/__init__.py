"""The bundled demo data: the handbook of a railway that does not exist.

The folder `data` has corpus.jsonl, queries.jsonl and qrels.tsv; its README describes them and how they were judged.
"""
