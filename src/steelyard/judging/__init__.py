"""Judging: which documents to judge, judgments by people and models, and how far the judges agree."""
