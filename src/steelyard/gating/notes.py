"""The notes of a gate. Some texts are those of errors too, if the gate does not allow what they report."""

from __future__ import annotations

from steelyard.comparison.pairs import DEPENDS
from steelyard.notes import Texts, declare
from steelyard.wording import SHOWN_NAMES, counted, listed

QUERIES_MISSING = (
    "{count:,} of the {queries:,} {queries:query|queries} of the baseline {count:has|have} no value in run {run!r} "
    "({examples:examples})"
)
JUDGMENTS_CHANGED = (
    "{count:,} of {queries:,} {queries:query|queries} {count:has|have} other judgments than in the baseline "
    "({examples:examples})"
)
LISTS_UNKNOWN = (
    "{chunked:?each chunker of {sources:all} has its own judgments|the lists of documents are not in {sources:all}}"
)
LISTS_ADVICE = (
    "{chunked:?Check a bench without `chunkers`|Use the result folder of a bench as the result, and as the baseline a "
    "result folder, or a file that `steelyard gate FOLDER --save-baseline baseline.json` wrote}"
)


def _gate_depends_on_overlap(rules: tuple[tuple[str, str], ...]) -> str:
    return (
        f"the outcome of {_which(rules)} {DEPENDS} to be relevant. SpanR needs no such rule: it counts the text itself"
    )


def _which(rules: tuple[tuple[str, str], ...]) -> str:
    return listed([f"`{rule}` for {run}" for rule, run in rules], SHOWN_NAMES)


def _gate_undecided(rules: tuple[tuple[str, str], ...], documents: int, strict: bool) -> str:
    judge = f"judge {counted(documents, 'document')}" if documents else "judge documents of both runs"
    strictly = "" if strict else ". With strict_judged=True (--strict) the gate fails"
    return (
        f"the outcome of {_which(rules)} depends on documents that nobody judged. To decide it, {judge}; "
        f"`steelyard pool` selects them{strictly}"
    )


WARNINGS: Texts = {
    "gate-versions-differ": "{result} was evaluated by Steelyard {version}, {baseline} by {baseline_version}; write "
    "the baseline again if values changed that should not",
    "gate-datasets-differ": "the dataset differs from that of the baseline ({name} {fingerprint}, {baseline_name} "
    "{baseline_fingerprint}): documents, queries or qrels changed",
    "gate-qrels-unknown": "{source} does not record its qrels; they are assumed to be the same",
    "gate-queries-missing": f"{QUERIES_MISSING} and {{count:is|are}} left out",
    "gate-judgments-changed": f"{JUDGMENTS_CHANGED}: part of the change may come from the qrels",
    "gate-unknown-documents": "run {run!r}: it returned {count:,} {count:document that is|documents that are} not "
    "in the corpus",
    "gate-baseline-run-failed": "run {run!r} of the baseline: {failures}",
    "gate-values-unchanged": "every value of {runs:listed} equals that of the baseline: the change does not affect "
    "retrieval, or the bench used cached answers (--fresh asks again)",
    "gate-values-missing": "run {run!r} has no value of {measure} for {count:,} {count:query that has|queries that "
    "have} one in the baseline; {count:it is|they are} left out",
    "gate-too-few-queries": "the rule `{rule}`: {queries:,} queries of run {run!r} are too few: they would probably "
    "miss even a {kind} of {value:.4f}, the whole value of the baseline",
    "gate-rule-direction": "the rule `{rule}`: a {better:more?higher|lower} value of {measure} is better; check the "
    "operator",
    "gate-undecided": _gate_undecided,
    "gate-depends-on-overlap": _gate_depends_on_overlap,
    "gate-overlap-unknown": "{source} has values by one overlap rule only, so it was not checked whether an outcome "
    "depends on how much of a passage a chunk must contain. Use a result folder as the baseline, or a file that "
    "`steelyard gate FOLDER --save-baseline baseline.json` wrote",
    "gate-lists-unknown": f"{LISTS_UNKNOWN}, so unjudged documents were not checked. An outcome may depend on them. "
    f"{LISTS_ADVICE}",
}
INFO: Texts = {
    "gate-bench-rules": "from `gate:` in bench.yaml: {rules:semicolons}",
    "gate-one-run-checked": "only {run!r} was checked, the only run of the baseline; run='NAME' (--run NAME) checks "
    "another",
    "gate-other-run": "run {run!r} is compared with {baseline!r}, the only run of the baseline",
    "gate-measure-not-checked": "the measure {measure} {reason:machine?depends on the machine and is not checked; "
    "write a rule to check it|{reason:no values?has no value for any query, in the result and in the baseline, and "
    "is not checked|is not checked: neither a higher nor a lower value is better}}",
    "gate-dialects-differ": "the dialect is {dialect} in {result} and {baseline_dialect} in {baseline}; the measures "
    "that are compared have the same definition",
    "gate-queries-new": "{count:,} of the {queries:,} {queries:query|queries} of run {run!r} {count:is|are} not in "
    "the baseline ({examples:examples}); it is compared on the {shared:,} that both have",
}
declare(warning=WARNINGS, info=INFO)
