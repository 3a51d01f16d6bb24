"""The bundled demo data: the handbook of a railway that does not exist.

The `data` folder beside this file is a JSONL trio (corpus, queries, judgments);
its README says what is in it and how it was judged.
"""
