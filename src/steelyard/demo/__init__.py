"""The bundled demo data: the handbook of a fictional railway.

<<<<<<< HEAD
The `data` folder beside this file has BEIR's layout (corpus, queries, qrels);
its README describes the content and the judging.
=======
The folder `data` has corpus.jsonl, queries.jsonl and qrels.tsv; its README describes them and how they were judged.
>>>>>>> s4
"""
