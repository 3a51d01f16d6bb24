"""Reference tables, read from the registries: measures, dialects, formats, bench keys, retrievers, notes, verbs."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import steelyard as sy
from steelyard.bench.config import Bench
from steelyard.cli import _MODULES, VERBS
from steelyard.cli.arguments import verb_parser
from steelyard.dialects.dialect import Dialect, dialects
from steelyard.dialects.explain import sections
from steelyard.io.registry import FORMATS
from steelyard.measures import listing as measure_listing
from steelyard.measures.grammar import as_text
from steelyard.measures.registry import FAMILIES, Definition, definitions
from steelyard.notes import _WORDINGS, SEVERITIES
from steelyard.options import POLICIES, Options
from steelyard.report.tables import Table, markdown
from steelyard.retrievers.registry import listing as retriever_listing

FAMILY_TITLES = {
    "binary": "Binary relevance",
    "graded": "Graded relevance",
    "diversity": "Targets and diversity",
    "user_models": "User models",
    "trec": "trec_eval",
    "sets": "Sets",
    "counts": "Counts, coverage and cost",
}


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table of texts."""
    return markdown(Table(list(columns), [list(map(str, row)) for row in rows]), links=True)


def code(text: str) -> str:
    """Inline code, also in the cell of a table."""
    return f"`{text}`"


def fenced(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


# Measures


def measures() -> str:
    """The list of all measures."""
    found = measure_listing()
    names = [f"[{row[0]}](#{_anchor(name)})" for name, row in zip(found, found.rows, strict=True)]
    rows = [
        (linked, what, parameters, aliases)
        for linked, (_, what, parameters, aliases, _) in zip(names, found.rows, strict=True)
    ]
    return table(("measure", "what", "parameters", "aliases"), rows)


def measure_definitions() -> str:
    """The formula, parameters and edge cases of every measure, family by family."""
    parts = []
    for family in FAMILIES:
        parts.append(f"### {FAMILY_TITLES[family]}")
        parts += [_definition(each) for each in definitions().values() if each.family == family]
    return "\n\n".join(parts)


def _anchor(name: str) -> str:
    return f"measure-{name}"


def _definition(definition: Definition) -> str:
    formula, clauses, edges = sections(definition)
    lines = [f"#### {definition.name} {{ #{_anchor(definition.name)} }}", definition.headline]
    if formula:
        lines.append(fenced("\n".join(formula)))
    listed = [
        f"- {code(name if value is None else f'{name}={value}')}: {text}" for name, value, text in clauses
    ]
    defaults = ", ".join(f"{p.name}={as_text(p.default)}" for p in definition.parameters)
    if listed:
        lines.append("\n".join(listed))
    if defaults:
        lines.append(f"Defaults: {code(defaults)}.")
    lines += edges
    better = {"more": "Higher is better.", "less": "Lower is better.", "neither": ""}[definition.better]
    lines.append(f"Range {as_text(definition.low)} to {as_text(definition.high)}. {better}".rstrip())
    if definition.aliases:
        lines.append(f"Also called {', '.join(map(code, definition.aliases))}.")
    if definition.cites:
        lines.append(f"Source: {definition.cites}.")
    return "\n\n".join(lines)


# Dialects


def dialect_list() -> str:
    """Every dialect with its description."""
    rows = [(f"[{d.name}](#names-of-{d.name})", d.about) for d in dialects().values() if d.names]
    return table(("dialect", "what"), rows)


def dialect_names() -> str:
    """Every dialect: its source, its policies, its names and the measures that they mean."""
    return "\n\n".join(_dialect(each) for each in dialects().values() if each.names)


def _dialect(dialect: Dialect) -> str:
    default = Options()
    policies = [
        f"{name}={value}" for name, value in dialect.policies.items() if value != getattr(default, name, None)
    ]
    lines = [f"### {dialect.name} {{ #names-of-{dialect.name} }}", dialect.about]
    if dialect.source:
        lines.append(f"Source: {dialect.source}.")
    differ = ", ".join(map(code, policies))
    lines.append(f"Policies: {differ}; others as in Steelyard." if differ else "Policies as in Steelyard.")
    lines.append(
        table(
            ("name", "measure in Steelyard"),
            ((code(name), code(meaning)) for name, meaning in dialect.names.items()),
        )
    )
    return "\n\n".join(lines)


# Formats, bench.yaml, retrievers


def formats() -> str:
    """Every format of runs and qrels."""
    return table(
        ("format", "reads", "writes", "content"),
        (
            (code(each.name), ", ".join(each.reads), ", ".join(each.writes), each.description)
            for each in FORMATS
        ),
    )


def bench_keys() -> str:
    """Every key of bench.yaml, with its default and its meaning; the policies last."""
    fields = sorted(Bench.model_fields.items(), key=lambda item: item[0] in POLICIES)
    return table(
        ("key", "default", "meaning"),
        ((code(name), _default(field), field.description or "") for name, field in fields),
    )


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if default is None:
        return "none"
    if hasattr(default, "model_dump"):
        default = "{" + ", ".join(f"{key}: {value}" for key, value in default.model_dump().items()) + "}"
    return code(str(default))


def retrievers() -> str:
    """Every retriever of a bench, with its settings and the extra that it needs."""
    rows = [
        (code(name), what, ", ".join(map(code, settings.split(", "))), code(extra) if extra else "")
        for name, what, settings, extra in retriever_listing().rows
    ]
    return table(("retriever", "what", "settings", "extra"), rows)


def policies() -> str:
    """Every value of every policy with its meaning."""
    rows = [
        (code(name), code(value) + (" (default)" if value == str(option.default) else ""), meaning)
        for name, option in Options.__dataclass_fields__.items()
        if option.metadata["help"]
        for value, meaning in option.metadata["meaning"].items()
    ]
    return table(("policy", "value", "meaning"), rows)


# Notes

SAMPLES: dict[str, Any] = {
    "baseline_fingerprint": "c41d",
    "chunks": 90,
    "distractors": 9,
    "document": "d1",
    "fingerprint": "8a07",
    "first": "dense, q1",
    "query": "q1",
    "result": "result.json",
    "source": "result.json",
    "baseline": "bm25",
    "better": "less",
    "budget": "R(per=target, budget=2000)",
    "column": "type",
    "command": "steelyard pool RESULT/runs/*.parquet -o pool.jsonl",
    "correction": "holm",
    "dialect": "trec_eval-9",
    "baseline_dialect": "steelyard",
    "error": "timed out",
    "failures": "failed on 3 of 50 queries",
    "file": "judgments.jsonl",
    "folder": "bench-result",
    "format": "msmarco",
    "id_hint": None,
    "judge": "llama3",
    "kind": "qrels",
    "other": "run",
    "measure": "nDCG@10",
    "measures": ("nDCG@10",),
    "missing": "zero",
    "name": "demo",
    "baseline_name": "demo",
    "norm": "max",
    "overlap": "any",
    "policy": "zero",
    "pool": "none",
    "reason": "...",
    "role": "query_id",
    "rule": "nDCG@10 >= 0.40",
    "run": "dense",
    "runs": ("dense",),
    "split": "test",
    "test": "t",
    "ties": "docid-desc",
    "version": "0.1.0",
    "baseline_version": "0.0.9",
    "where": "document",
    "what": "documents",
    "alpha": 0.05,
    "asked": 100,
    "depth": 10,
    "documents": 40,
    "level": 1.0,
    "lowest": 0.5,
    "longest": 5,
    "n": 30,
    "effective": 47.0,
    "others": 85,
    "queries": 50,
    "shared": 47,
    "shares": (1.0, 0.6),
    "value": 0.4,
}
"""Values for the parameters of notes, by name; a parameter that is not here has a value of its type."""

OF_A_NOTE: dict[str, dict[str, Any]] = {
    "across-leader-depends": {"leader": "bm25", "without": (("scifact", "dense"),)},
    "across-left-out": {"source": "beir.csv", "names": ("Avg.",)},
    "across-missing": {"runs": (("dense", ("scifact",)),)},
    "across-one-dataset-decides": {"pairs": (("bm25", "dense", "scifact", "reversed"),)},
    "across-opposite": {"pairs": (("bm25", "dense", "better", "scifact"),)},
    "across-percent": {"source": "beir.csv"},
    "across-shared-datasets": {"shared": ("scifact", "cranfield"), "datasets": 3},
    "across-splits": {"tasks": ("MSMARCO",)},
    "across-unused-datasets": {"names": ("Touche2020",)},
    "datasets-merged": {"column": "dataset"},
    "compared-on-shared-queries": {"runs": (("dense", 3, ("q1", "q2", "q3")),)},
    "chunkings-evidence": {"chunkings": ("fixed-60",), "texts": ("3 spans are split by chunk boundaries",)},
    "chunkings-text-read": {
        "measure": "R(per=target)@10",
        "favours": True,
        "runs": (("bm25 on whole", "first", 900.0),),
    },
    "cutoff-deeper-than-lists": {"measures": ("R@1000",), "depth": 100},
    "dataset-error": {
        "kind": "unknown-document",
        "text": "1 judgment of a document that is not in the corpus",
    },
    "document-ids-differ": {"run": ("D1",), "qrels": ("d1",), "difference": "case"},
    "empty-queries-dropped": {"queries": ("q1", "q2", "q3")},
    "facts-not-found": {"count": 1, "facts": ("'the balance sinks' (query 'q1')",)},
    "fusion-norm-not-tried": {"reason": "the highest score of a list is not positive"},
    "gate-bench-rules": {"rules": ("nDCG@10 >= 0.40",)},
    "gate-dialects-differ": {"baseline": "baseline.json"},
    "gate-lists-unknown": {"sources": ("result.json",)},
    "gate-measure-not-checked": {"measure": "Latency", "reason": "machine"},
    "gate-rule-direction": {"rule": "Latency >= 0.2", "measure": "Latency"},
    "gate-too-few-queries": {"kind": "drop"},
    "gate-undecided": {"rules": (("no significant drop in nDCG@10", "dense"),)},
    "gate-versions-differ": {"baseline": "baseline.json"},
    "geometric-means-tested": {"measures": ("GMAP",)},
    "grades-below-rel": {"measures": ("P@10",)},
    "interval-and-p-disagree": {"pairs": (("dense", "bm25", "nDCG@10", "0.06", False),)},
    "iterations-ignored": {"values": ("1", "2")},
    "judging-stopped": {"reason": "1,000 requests were made (--max-requests)"},
    "judges-resolved": {"judges": ("ann", "bob"), "rule": "majority"},
    "lists-shorter-than-cutoff": {"measure": "P@10"},
    "measures-with-own-cutoff": {"measures": ("R@20",)},
    "mteb-selected": {"subset": "default", "split": "test"},
    "no-distractors": {"measures": ("Confusion@3",)},
    "no-grade-zero": {"measures": ("Bpref",)},
    "no-judged-document": {"run": ("D1",), "qrels": ("d7",)},
    "no-shared-query": {"run": ("Q1",), "qrels": ("q1",)},
    "no-such-grade": {"level": 2, "measures": ("P(rel=2)@5",)},
    "no-targets": {"measures": ("R(per=target)@10",)},
    "no-unanswerable-query": {"measures": ("Abstain",)},
    "not-tested": {"pairs": (), "reason": "one query only"},
    "ranking-differs-in-slices": {"slices": (("factoid", "bm25", "dense", 0.05, 22, 6, 1, 1),)},
    "ranks-ignored": {"column": "rank"},
    "repetitions": {"column": "seed", "averaged": True},
    "result-file-missing": {"file": "corpus.parquet"},
    "result-means-differ": {"examples": ("nDCG@10 of dense",)},
    "run-not-measured": {"reason": "it failed on every query"},
    "several-tags": {"tags": ("bm25", "dense")},
    "split-chosen": {"others": ("train", "dev")},
    "unknown-documents": {"examples": ("D1",), "corpus": ("d1",)},
}
"""Values that only one note uses in this way."""


def notes() -> str:
    """Every note by severity: its code and its text, with example values."""
    rows = [
        (code(name), severity, sample(name, wording))
        for severity in SEVERITIES
        for name, (own, wording) in sorted(_WORDINGS.items())
        if own == severity and name != "text"
    ]
    return table(("code", "severity", "text, with example values"), rows)


def sample(name: str, wording: Callable[..., str]) -> str:
    """The text of a note with example values."""
    values = dict(OF_A_NOTE.get(name, {}))
    hints = typing.get_type_hints(wording)
    for parameter in inspect.signature(wording).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in values:
            values[parameter.name] = _sample_value(parameter.name, hints[parameter.name])
    return wording(**values)


def _sample_value(name: str, hint: Any) -> Any:
    several = typing.get_origin(hint) is not None and typing.get_origin(hint) is not typing.Literal
    given = SAMPLES.get(name)
    fits = isinstance(given, tuple) is several and (hint is not str or isinstance(given, str))
    if name in SAMPLES and (given is None or fits):
        return given
    if several:
        numbers = {int: (1, 2), float: (0.25, 0.75)}
        return next((numbers[kind] for kind in typing.get_args(hint) if kind in numbers), ("q1", "q2"))
    return {int: 3, float: 0.5, bool: False}.get(hint, name.upper())


# The command line


def command_line() -> str:
    """The help of every verb."""
    parts = []
    for verb, what in VERBS.items():
        function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
        parts.append(f"## steelyard {verb} {{ #{verb} }}")
        parts.append(f"{what[:1].upper()}{what[1:]}.")
        parts.append(fenced(verb_parser(verb, function, 80).format_help()))
    return "\n\n".join(parts)


def verbs() -> str:
    """Every verb with its description."""
    return table(("verb", "what it does"), ((f"[{verb}](#{verb})", what) for verb, what in VERBS.items()))


# Python


def api(names: Iterable[str]) -> str:
    """Headings and directives for public names of `steelyard`, where they are defined."""
    parts = []
    for name in names:
        value = getattr(sy, name)
        target = value
        if inspect.ismodule(value):
            target = CALLABLE_PACKAGES[name]
        parts.append(
            f"::: {target.__module__}.{target.__qualname__}\n    options:\n      heading: steelyard.{name}\n      toc_label: {name}"
        )
    return "\n\n".join(parts)


def _callable_packages() -> dict[str, Any]:
    """The functions that packages which can be called stand for."""
    from steelyard.bench.runner import bench
    from steelyard.dialects import listing as dialect_listing
    from steelyard.gate.checking import check

    return {
        "bench": bench,
        "dialects": dialect_listing,
        "gate": check,
        "measures": measure_listing,
        "retrievers": retriever_listing,
    }


CALLABLE_PACKAGES = _callable_packages()
