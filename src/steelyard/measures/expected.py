"""Means over all orders of tied documents."""
