"""Comparing runs: from values per query to a leaderboard that suggests no order the data does not support."""
