"""Joining a run with its judgments, once: every measure reads the result and nothing else."""
