"""The values of a measure on an alignment, their summary over queries, and notes on qrels that lack what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from steelyard.alignment.alignment import Alignment, MissingDataError
from steelyard.alignment.hits import Floats
from steelyard.errors import MeasureError
from steelyard.measures.grammar import Measure
from steelyard.measures.registry import definitions
from steelyard.measures.tie_groups import over_orders
from steelyard.notes import Note, Texts, declare, note

WARNINGS: Texts = {
    "no-distractors": "no document is judged a distractor (a grade below 0), so {measures:listed} can only be 0",
    "no-grade-zero": "no document is judged not relevant (grade 0), so {measures:listed} {measures:is|are} the "
    "share of the relevant documents that are retrieved",
    "no-unanswerable-query": "every query has a relevant document, so {measures:listed} {measures:has|have} no "
    "query to count",
    "no-such-grade": "no document has grade {level:g} or above, so {measures:listed} can only be 0",
}
INFO: Texts = {
    "no-targets": "the qrels name no targets, so in {measures:listed} each relevant document is its own target"
}
declare(warning=WARNINGS, info=INFO)

GEOMETRIC_FLOOR = 1e-5  # The smallest value in a geometric mean, as in trec_eval.

_MISSING_DATA = {
    "tokens": "a budget needs the length of each document: Run(..., tokens={doc_id: count}) or "
    "texts={doc_id: text}, or a column `tokens`; on the command line --set dataset=DIR",
    "texts": "near-repeats need the texts of the documents: Run(..., texts={doc_id: text}), or on the command "
    "line --set dataset=DIR",
    "seconds": "it needs the time of each query: Run(..., seconds={query_id: seconds}); a bench records them",
    "tokens kept": "with unjudged=remove the tokens of the removed documents are unknown; choose unjudged=keep",
    "texts kept": "with unjudged=remove it is unknown which of the remaining documents nearly repeat one another; "
    "choose unjudged=keep, or near=False",
    "scores kept": "with unjudged=remove the best score of the remaining documents is unknown; choose unjudged=keep",
    "ranges": "it needs to know where the spans and the chunks are in their documents: qrels that "
    "Evidence.judge(chunks) or `steelyard evidence -o qrels.jsonl` makes from spans",
    "ranges kept": "with unjudged=remove the text of the removed chunks is unknown; choose unjudged=keep",
    "scores": "a threshold needs scores, and this run has only ranked ids",
}


def values(measure: Measure, a: Alignment, expected: bool = False) -> Floats:
    """One number per query, NaN if the measure does not apply; `expected`: the mean over all orders of ties."""
    function = measure.definition.function
    if expected:
        how = measure.definition.expected
        if how is None:
            able = sorted(d.name for d in definitions().values() if d.expected not in (None, "same"))
            problem = f"ties=expected is not defined for {measure.name}; it is defined for {', '.join(able)}."
            raise MeasureError(f"{problem} Choose ties=docid-desc, docid-asc or stable.")
        if how == "linear":
            a = over_orders(a)
        elif callable(how):
            function = how
    arguments = measure.parameters
    if measure.definition.cutoff != "none":
        arguments["k" if measure.definition.cutoff_kind == "rank" else "r"] = measure.cutoff
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(function(a, **arguments), dtype=np.float64)
    except MissingDataError as missing:
        raise MeasureError(f"{measure} cannot be computed from this run: {_MISSING_DATA[missing.what]}.") from None


def summary(measure: Measure, per_query: Floats) -> float:
    """The measure over all queries; NaN values are left out. NaN if no query is left."""
    kept = per_query[~np.isnan(per_query)]
    how = how_summarised(measure)
    if how == "sum":
        return float(kept.sum())
    if not len(kept):
        return float("nan")
    if how == "geometric":
        return float(np.exp(np.mean(logarithms(kept))))
    if how == "max":
        return float(kept.max())
    if how.startswith("p"):
        return float(np.percentile(kept, int(how[1:])))
    return float(kept.mean())


def reads_texts(measure: Measure) -> bool:
    """Whether a measure reads the texts of documents or their lengths: near-repeats, or a budget."""
    given = measure.parameters
    return given.get("budget") is not None or given.get("near", False) is not False


def logarithms(per_query: Floats) -> Floats:
    """The logarithms that a geometric mean averages; values below its floor count as the floor."""
    return np.log(np.maximum(per_query, GEOMETRIC_FLOOR))


def geometric(measure: Measure) -> bool:
    """Whether the measure over all queries is a geometric mean."""
    return how_summarised(measure) == "geometric"


def averaged(measure: Measure) -> bool:
    """Whether the measure over all queries is a mean, so that an interval of the mean applies to it."""
    return how_summarised(measure) == "mean"


def how_summarised(measure: Measure) -> str:
    """What a measure is over all queries: mean, sum, geometric, max, or a percentile, as p95."""
    how = measure.definition.summary
    return str(measure.parameters.get(how, how))


@dataclass(frozen=True)
class QrelsTraits:
    """What the qrels have: lowest grade, lowest above 0 and highest, any grade 0, named targets, and `unanswerable`
    queries, without a document graded above 0."""

    lowest: float = inf
    lowest_positive: float = inf
    highest: float = -inf
    zeros: bool = False
    targets: bool = False
    unanswerable: bool = False

    @classmethod
    def of(cls, a: Alignment, measures: Mapping[str, Measure]) -> QrelsTraits:
        """The traits of the qrels of an alignment; targets are looked for only if a measure counts them."""
        grade = a.judged.grade

        def of_grades() -> QrelsTraits:
            return cls(
                lowest=float(grade.min(initial=inf)),
                lowest_positive=float(grade[grade > 0].min(initial=inf)),
                highest=float(grade.max(initial=-inf)),
                zeros=bool(np.any(grade == 0)),
            )

        targets = bool(_over_targets(measures)) and has_named_targets(a)
        unanswerable = bool(np.any(a.above_zero == 0))
        return replace(a.judged.once("traits", of_grades), targets=targets, unanswerable=unanswerable)

    def __add__(self, other: QrelsTraits) -> QrelsTraits:
        """The traits of two parts of the qrels together."""
        return QrelsTraits(
            lowest=min(self.lowest, other.lowest),
            lowest_positive=min(self.lowest_positive, other.lowest_positive),
            highest=max(self.highest, other.highest),
            zeros=self.zeros or other.zeros,
            targets=self.targets or other.targets,
            unanswerable=self.unanswerable or other.unanswerable,
        )

    def notes(self, measures: Mapping[str, Measure]) -> list[Note]:
        """A note for everything that some of the measures need and the qrels lack."""
        if self.highest == -inf:
            return []
        needing: dict[str | None, list[str]] = {}
        for name, measure in measures.items():
            needing.setdefault(measure.definition.needs, []).append(name)
        lacking = {
            "no-distractors": self.lowest >= 0 and needing.get("distractors"),
            "no-grade-zero": not self.zeros and needing.get("not relevant"),
            "no-unanswerable-query": not self.unanswerable and needing.get("unanswerable"),
            "no-targets": not self.targets and self.highest > 0 and _over_targets(measures),
        }
        beyond: dict[float, list[str]] = {}
        for name, measure in measures.items():
            level = dict(measure.given).get("rel")
            if level is not None and measure.definition.needs_relevant and float(level) > self.highest > 0:
                beyond.setdefault(float(level), []).append(name)
        notes = [note(code, measures=names) for code, names in lacking.items() if names]
        return notes + [note("no-such-grade", level=level, measures=names) for level, names in beyond.items()]


def _over_targets(measures: Mapping[str, Measure]) -> list[str]:
    return [name for name, measure in measures.items() if is_over_targets(measure)]


def is_over_targets(measure: Measure) -> bool:
    """Whether a measure counts targets instead of documents."""
    return measure.definition.over_targets or measure.parameters.get("per") == "target"


def has_named_targets(a: Alignment) -> bool:
    """Whether some target has another name than the one document that satisfies it."""
    targets = a.targets
    if len(targets.doc) != len(targets.name):
        return True
    pairs = zip(targets.target.tolist(), targets.doc.tolist(), strict=True)
    return any(targets.name[target] != a.doc_ids[doc] for target, doc in pairs)
