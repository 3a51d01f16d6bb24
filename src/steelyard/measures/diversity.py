"""Measures over subtopics: novelty and diversity."""
