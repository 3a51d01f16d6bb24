"""The bundled demo data: the handbook of a fictional railway.

The `data` folder beside this file has BEIR's layout (corpus, queries, qrels);
its README describes the content and the judging.
"""
