"""Comparison of runs: values per query, paired tests, leaderboard, slices, and the queries that changed most."""
