"""Judging: which documents to judge, and estimates from judgments of a sample."""
