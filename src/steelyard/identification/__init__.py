"""Identification: a number that some tool printed leads to the definitions that give it."""

from __future__ import annotations

from steelyard.identification.result import Identification
from steelyard.identification.search import identify

__all__ = ["Identification", "identify"]
