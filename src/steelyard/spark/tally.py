"""What a worker counts beside the values: coverage, faults, and examples for the messages. Tallies add up."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from functools import reduce

from steelyard.errors import SHOWN_PROBLEMS
from steelyard.measures.needs import Held
from steelyard.spark.faults import Fault, Kind

SHOWN_QUERIES = 3
"""How many queries of the run and of the judgments are named where they share none."""
SHOWN_DOCUMENTS = 100
"""How many documents of either are looked at where none that came back is judged."""


@dataclass(frozen=True)
class Tally:
    """Counts over some queries. A query in an example goes with its place among the judgments.

    `counts` are Coverage's; `longest` the longest list; `held` what the judgments hold;
    `faintest` the lowest grade above 0; `absent` the first queries that the run
    lacks, `judged` the first judged ones, `strangers` the first that only the run has; `returned` and `known` documents
    that came back, and judged ones, of queries without a judged document that came back; `repeated`
    the first query with a repeated document, and that document; `error` the class and the words of
    an error that a measure raised.
    """

    counts: dict[str, int] = field(default_factory=dict)
    longest: int = 0
    held: Held = field(default_factory=Held)
    faintest: float = math.inf
    faults: dict[Kind, Fault] = field(default_factory=dict)
    absent: list[tuple[int, str]] = field(default_factory=list)
    judged: list[tuple[int, str]] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    repeated: tuple[int, str, str] | None = None
    error: tuple[str, str] | None = None

    def __add__(self, other: Tally) -> Tally:
        counts, faults = dict(self.counts), dict(self.faults)
        for name, count in other.counts.items():
            counts[name] = counts.get(name, 0) + count
        for kind, fault in other.faults.items():
            faults[kind] = faults[kind] + fault if kind in faults else fault
        return Tally(
            counts=counts,
            longest=max(self.longest, other.longest),
            held=self.held + other.held,
            faintest=min(self.faintest, other.faintest),
            faults=faults,
            absent=sorted([*self.absent, *other.absent])[:SHOWN_PROBLEMS],
            judged=sorted([*self.judged, *other.judged])[:SHOWN_QUERIES],
            strangers=sorted([*self.strangers, *other.strangers])[:SHOWN_QUERIES],
            returned=sorted([*self.returned, *other.returned])[:SHOWN_DOCUMENTS],
            known=sorted([*self.known, *other.known])[:SHOWN_DOCUMENTS],
            repeated=min((one.repeated for one in (self, other) if one.repeated), default=None),
            error=min((one.error for one in (self, other) if one.error), default=None),
        )

    def to_text(self) -> str:
        """As it travels: JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Tally:
        """What `to_text` gave."""
        read = json.loads(text)
        return cls(
            counts=read["counts"],
            longest=read["longest"],
            held=Held(**read["held"]),
            faintest=read["faintest"],
            faults={Kind(int(kind)): Fault(**fault) for kind, fault in read["faults"].items()},
            absent=[(place, query) for place, query in read["absent"]],
            judged=[(place, query) for place, query in read["judged"]],
            strangers=read["strangers"],
            returned=read["returned"],
            known=read["known"],
            repeated=tuple(read["repeated"]) if read["repeated"] else None,
            error=tuple(read["error"]) if read["error"] else None,
        )


def total(texts: list[str]) -> Tally:
    """All tallies in one."""
    return reduce(Tally.__add__, map(Tally.from_text, texts), Tally())
