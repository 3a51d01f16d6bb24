"""Fusion: several ranked lists of the same queries made into one."""
