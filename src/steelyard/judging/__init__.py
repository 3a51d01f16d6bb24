"""Judgments by people and models: the file that holds them, and how far the judges agree."""
