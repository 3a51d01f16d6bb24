"""Measures from models of how a user reads a list."""
