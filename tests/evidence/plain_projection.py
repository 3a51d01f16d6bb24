"""The projection as its definition says it: every pair of target and chunk, one after the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any


def normal(text: str, case: bool = True, spaces: str = "single") -> str:
    text = unicodedata.normalize("NFKC", text)
    text = text if case else text.lower()
    return (" " if spaces == "single" else "").join(text.split())


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """The longest common subsequence by the textbook table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def satisfies(way: Mapping[str, Any], chunk: Mapping[str, Any], overlap: str = "any", **rule: Any) -> bool:
    """Whether a chunk meets every condition of one alternative."""
    if "doc_id" in way and chunk["doc_id"] != way["doc_id"]:
        return False
    if "parent" in way and chunk["parent"] != way["parent"]:
        return False
    if "page" in way and chunk["page"] != way["page"]:
        return False
    if "start" in way:
        shared = min(way["end"], chunk["end"]) - max(way["start"], chunk["start"])
        length = way["end"] - way["start"]
        if not {"any": shared > 0, "majority": shared > length / 2, "whole": shared == length}[overlap]:
            return False
    return "fact" not in way or contains(chunk["text"], way["fact"], **rule)


def contains(text: str, fact: str, share: float = 1, case: bool = True, spaces: str = "single") -> bool:
    if share == 1:
        return normal(fact, case, spaces) in normal(text, case, spaces)
    import re

    wanted, there = (re.findall(r"\w+", normal(each, case)) for each in (fact, text))
    return bool(wanted) and common_subsequence(wanted, there) >= len(wanted) * share - 1e-9


def judged(
    evidence: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]], chunks: Sequence[Mapping[str, Any]], **rule: Any
) -> set[tuple[str, str, str]]:
    """Every (query, chunk, target) that holds; a target that nothing satisfies has its stand-in."""
    found: set[tuple[str, str, str]] = set()
    for query, targets in evidence.items():
        for number, target in enumerate(targets, start=1):
            held = {
                (query, chunk["chunk_id"], str(number))
                for chunk in chunks
                if any(satisfies(way, chunk, **rule) for way in target)
            }
            found |= held or {(query, f"unfound:{query}:{number}", str(number))}
    return found
