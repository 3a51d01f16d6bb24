<<<<<<< HEAD
"""Judgments by people and models: the file that holds them, and how far the judges agree."""
=======
"""Judging: which documents to judge, and estimates from judgments of a sample."""
>>>>>>> pool
