"""Fusion: several ranked lists per query are combined into one."""
