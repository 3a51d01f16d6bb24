"""A measure's values on an alignment, and their summary over queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from steelyard.alignment.alignment import Alignment, MissingDataError
from steelyard.alignment.hits import Floats
from steelyard.errors import MeasureError
from steelyard.measures.grammar import Measure
from steelyard.measures.registry import expectations
from steelyard.wording import SHOWN_NAMES, listed, worded

_CARRY = {
    "tokens": "a budget needs each document's length: Run(..., tokens={doc_id: count}) or texts={doc_id: text}, or a column `tokens`; "
    "on the command line --dataset DIR",
    "texts": "near-repeats need the documents' texts: Run(..., texts={doc_id: text}), or on the command "
    "line --dataset DIR",
    "seconds": "it needs each query's time: Run(..., seconds={query_id: seconds}); a bench records them",
    "tokens kept": "with unjudged=remove the tokens of the documents taken out are not known; choose unjudged=keep",
    "texts kept": "with unjudged=remove it is not known which of the documents left nearly repeat one another; "
    "choose unjudged=keep, or near=False",
    "scores kept": "with unjudged=remove the best score of the documents left is not known; choose unjudged=keep",
    "scores": "a threshold needs scores, and this run has ranked ids only",
}


def values(measure: Measure, a: Alignment, expected: bool = False) -> Floats:
    """One number a query; NaN where the measure does not apply to it.

    `expected` averages over all orders of tied documents, where the measure can.
    """
    function = measure.definition.function
    if expected:
        able = expectations()
        if measure.name in able:
            function = able[measure.name]
        elif measure.name not in ("NumRet", "NumRel", "NumQ", "Latency"):
            raise MeasureError(
                f"ties=expected is not defined for {measure.name}; it is for {', '.join(sorted(able))}. "
                "Choose ties=docid-desc, docid-asc or stable."
            )
    arguments = measure.parameters
    if measure.definition.cutoff != "none":
        arguments["k" if measure.definition.cutoff_kind == "rank" else "r"] = measure.cutoff
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(function(a, **arguments), dtype=np.float64)
    except MissingDataError as missing:
        raise MeasureError(f"{measure} cannot be computed from this run: {_CARRY[missing.what]}.") from None


def summary(measure: Measure, per_query: Floats) -> float:
    """The measure over all queries; NaN values are left out. NaN where no query is left."""
    kept = per_query[~np.isnan(per_query)]
    how = _how(measure)
    if how == "sum":
        return float(kept.sum())
    if not len(kept):
        return float("nan")
    if how == "geometric":
        return float(np.exp(np.mean(np.log(np.maximum(kept, GEOMETRIC_FLOOR)))))
    if how == "max":
        return float(kept.max())
    if how.startswith("p"):
        return float(np.percentile(kept, int(how[1:])))
    return float(kept.mean())


def reads_texts(measure: Measure) -> bool:
    """Whether a measure looks at the documents' texts, or at how long they are: near-repeats, or a budget."""
    given = measure.parameters
    return given.get("budget") is not None or given.get("near", False) is not False


def averaged(measure: Measure) -> bool:
    """Whether a measure over all queries is its mean, so that an interval of the mean is its interval."""
    return _how(measure) == "mean"


def _how(measure: Measure) -> str:
    how = measure.definition.summary
    return str(measure.parameters.get(how, how))


GEOMETRIC_FLOOR = 1e-5
"""The least value that enters a geometric mean, as trec_eval has it."""


_OVER_TARGETS = ("targets", "diversity")


@dataclass(frozen=True)
class Held:
    """What judgments hold: their lowest and highest grade, whether some are 0, targets, queries without an answer."""

    lowest: float = inf
    highest: float = -inf
    zeros: bool = False
    targets: bool = False
    unanswerable: bool = False

    @classmethod
    def of(cls, a: Alignment, wanted: Mapping[str, Measure]) -> Held:
        """What the judgments of an alignment hold; targets are looked for where a measure counts them."""
        grade = a.judged.grade
        return cls(
            lowest=float(grade.min(initial=inf)),
            highest=float(grade.max(initial=-inf)),
            zeros=bool(np.any(grade == 0)),
            targets=bool(_over_targets(wanted)) and _named_targets(a),
            unanswerable=bool(np.any(a.judged_per_query(grade > 0) == 0)),
        )

    def __add__(self, other: Held) -> Held:
        """What two parts of the judgments hold together."""
        return Held(
            lowest=min(self.lowest, other.lowest),
            highest=max(self.highest, other.highest),
            zeros=self.zeros or other.zeros,
            targets=self.targets or other.targets,
            unanswerable=self.unanswerable or other.unanswerable,
        )

    def unmet(self, wanted: Mapping[str, Measure]) -> tuple[str, ...]:
        """A note for every need that some of the measures have and the judgments do not meet."""
        if self.highest == -inf:
            return ()
        notes = []
        if self.lowest >= 0 and (keys := _needing("distractors", wanted)):
            notes.append(
                f"no distractor is judged (a grade below 0), so {listed(keys, SHOWN_NAMES)} cannot be other than 0"
            )
        if not self.zeros and (keys := _needing("not relevant", wanted)):
            notes.append(
                f"no document is judged not relevant (grade 0), so {listed(keys, SHOWN_NAMES)} "
                f"{worded(len(keys), 'is', 'are')} the share of the relevant documents that came back"
            )
        if not self.unanswerable and (keys := _needing("unanswerable", wanted)):
            notes.append(
                f"every query has a relevant document, so {listed(keys, SHOWN_NAMES)} "
                f"{worded(len(keys), 'has', 'have')} no query to count"
            )
        if not self.targets and self.highest > 0 and (keys := _over_targets(wanted)):
            notes.append(
                f"the judgments name no targets, so in {listed(keys, SHOWN_NAMES)} each relevant document is its own"
            )
        return (*notes, *self._out_of_grade(wanted))

    def _out_of_grade(self, wanted: Mapping[str, Measure]) -> list[str]:
        """Measures that ask for a grade which no document has."""
        beyond: dict[float, list[str]] = {}
        for key, measure in wanted.items():
            level = dict(measure.given).get("rel")
            if level is not None and measure.definition.needs_relevant and float(level) > self.highest > 0:
                beyond.setdefault(float(level), []).append(key)
        return [
            f"no document is graded {level:g} or more, so {listed(keys, SHOWN_NAMES)} cannot be other than 0"
            for level, keys in beyond.items()
        ]


def _needing(need: str, wanted: Mapping[str, Measure]) -> list[str]:
    return [key for key, measure in wanted.items() if measure.definition.needs == need]


def _over_targets(wanted: Mapping[str, Measure]) -> list[str]:
    return [
        key
        for key, measure in wanted.items()
        if measure.definition.family in _OVER_TARGETS or measure.parameters.get("per") == "target"
    ]


def _named_targets(a: Alignment) -> bool:
    """Whether some target is called otherwise than the one document that satisfies it."""
    targets = a.targets
    if len(targets.doc) != len(targets.name):
        return True
    names = zip(targets.target.tolist(), targets.doc.tolist(), strict=True)
    return any(targets.name[target] != a.doc_ids[doc] for target, doc in names)
