"""Joining a run with its qrels, once: every measure reads the resulting Alignment and nothing else."""
