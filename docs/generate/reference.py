"""Reference tables, read from the registries: measures, dialects, formats, bench keys, retrievers, notes, verbs."""

from __future__ import annotations

import argparse
import inspect
import re
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import steelyard as sy
from steelyard.benchmark.config import Bench
from steelyard.cli import _MODULES, VERBS
from steelyard.cli.arguments import verb_parser
from steelyard.dialects.dialect import Dialect, dialects
from steelyard.dialects.explain import sections
from steelyard.io.formats import list_formats
from steelyard.measures import list_measures
from steelyard.measures.grammar import as_text
from steelyard.measures.registry import FAMILIES, Definition, definitions
from steelyard.notes import SEVERITIES, Text, fill, wordings
from steelyard.options import POLICIES, Options
from steelyard.report.tables import Table, markdown
from steelyard.retrievers.registry import class_of, list_retrievers, retriever_names
from steelyard.retrievers.settings import Declared

FAMILY_TITLES = {
    "binary": "Binary relevance",
    "graded": "Graded relevance",
    "diversity": "Targets and diversity",
    "user_models": "User models",
    "trec": "trec_eval",
    "sets": "Sets",
    "spans": "Spans of text",
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
    found = list_measures()
    by_family = sorted(
        zip(found, found.rows, strict=True), key=lambda row: FAMILIES.index(definitions()[row[0]].family)
    )
    rows = [
        (f"[{shown}](#{_anchor(name)})", what, parameters, aliases)
        for name, (shown, what, parameters, aliases, _) in by_family
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
    listed = [f"- {code(name if value is None else f'{name}={value}')}: {text}" for name, value, text in clauses]
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
    policies = [f"{name}={value}" for name, value in dialect.policies.items() if value != getattr(default, name, None)]
    lines = [f"### {dialect.name} {{ #names-of-{dialect.name} }}", dialect.about]
    if dialect.source:
        lines.append(f"Source: {dialect.source}.")
    differ = ", ".join(map(code, policies))
    lines.append(f"Policies: {differ}; others as in Steelyard." if differ else "Policies as in Steelyard.")
    lines.append(
        table(
            ("name", "measure in Steelyard"), ((code(name), code(meaning)) for name, meaning in dialect.names.items())
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
            for each in list_formats().values()
        ),
    )


def bench_keys() -> str:
    """Every key of bench.yaml, with its default and its meaning; the policies last."""
    fields = sorted(Bench.model_fields.items(), key=lambda item: item[0] in POLICIES)
    return table(
        ("key", "default", "meaning"),
        ((code(name), _default(field), " ".join((field.description or "").split())) for name, field in fields),
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
        for name, what, settings, extra in list_retrievers().rows
    ]
    return table(("retriever", "what", "settings", "extra"), rows)


def retriever_settings() -> str:
    """Every declared setting of every adapter, with its default and its meaning."""
    parts = []
    for name in retriever_names():
        cls = class_of(name)[0]
        if issubclass(cls, Declared) and cls.retriever == name:
            rows = [(code(key), _shown_default(entry.default), entry.meaning) for key, entry in cls.declared.items()]
            parts += [f"### {name} {{ #settings-of-{name} }}", table(("setting", "default", "meaning"), rows)]
    return "\n\n".join(parts)


def _shown_default(default: Any) -> str:
    return "" if default is None else str(default)


def policies() -> str:
    """Every value of every policy with its meaning."""
    rows = [
        (code(name), code(value) + (" (default)" if value == str(option.default) else ""), meaning)
        for name, option in Options.__dataclass_fields__.items()
        if option.metadata["help"]
        for value, meaning in option.metadata["meaning"].items()
    ]
    rows.append((code("rel"), "a grade", Options.__dataclass_fields__["rel"].metadata["help"]))
    return table(("policy", "value", "meaning"), rows)


# Notes

SAMPLES: dict[str, Any] = {
    "alpha": 0.05,
    "ids": ("a7", "doc-7"),
    "intervals": "95% intervals, simultaneous over the tested pairs (max-t)",
    "levels": ("1", "2"),
    "narrow": ("bm25", "dense"),
    "rows": (3, 7),
    "wide": ("bm25", "hybrid"),
    "answers": 3,
    "asked": 100,
    "averaged": True,
    "baseline": "bm25",
    "baseline_dialect": "steelyard",
    "baseline_fingerprint": "c41d",
    "baseline_name": "demo",
    "baseline_version": "0.0.9",
    "better": "less",
    "budget": "R(per=target, budget=2000)",
    "chunked": False,
    "chunkings": ("fixed-60",),
    "chunks": 90,
    "column": "type",
    "command": "steelyard pool RESULT/runs/*.parquet -o pool.jsonl",
    "corpus": ("d1",),
    "correction": "holm",
    "count": 3,
    "datasets": 3,
    "depth": 10,
    "dialect": "trec_eval-9",
    "difference": 0.02,
    "distractors": 9,
    "document": "d1",
    "documents": 40,
    "effective": 47.0,
    "error": "timed out",
    "every": False,
    "examples": ("q1", "q2"),
    "facts": ("'the balance sinks' (query 'q1')",),
    "failed": 3,
    "failures": "failed on 3 of 50 queries",
    "favours": True,
    "few": False,
    "file": "judgments.jsonl",
    "fingerprint": "8a07",
    "first": "dense, q1",
    "folder": "bench-result",
    "format": "msmarco",
    "held": False,
    "highest": 0.5,
    "id_hint": None,
    "judge": "llama3",
    "judges": 3,
    "kind": "qrels",
    "leader": "bm25",
    "level": 1.0,
    "lines": (1, 2),
    "longest": 5,
    "lowest": 0.5,
    "measure": "nDCG@10",
    "measured": False,
    "measures": ("nDCG@10",),
    "missing": "zero",
    "most": 20,
    "n": 30,
    "name": "demo",
    "names": ("Avg.",),
    "needed": 390,
    "about": 390,
    "norm": "max",
    "ordered": False,
    "other": "bm25",
    "others": 85,
    "overlap": "any",
    "pairs": 3,
    "policy": "zero",
    "pool": "none",
    "qrels": ("q1",),
    "queries": 50,
    "query": "q1",
    "ratio": 3.0,
    "reason": "1,000 requests were made (--max-requests)",
    "removed": False,
    "repeats": False,
    "result": "result.json",
    "role": "query_id",
    "rule": "nDCG@10 >= 0.40",
    "rules": ("nDCG@10 >= 0.40",),
    "run": "dense",
    "runs": ("dense",),
    "seconds": (0.004, 0.012),
    "shared": 47,
    "shares": (1.0, 0.6),
    "skipped": False,
    "slices": (("factoid", "bm25", "dense", 0.05, 22, 6, 1, 1),),
    "source": "result.json",
    "sources": ("result.json",),
    "split": "test",
    "strict": False,
    "tags": ("bm25", "dense"),
    "tasks": ("MSMARCO",),
    "test": "t",
    "text": "1 judgment of a document that is not in the corpus",
    "texts": ("3 spans are split by chunk boundaries",),
    "ties": "docid-desc",
    "undecided": False,
    "value": 0.4,
    "values": ("1", "2"),
    "version": "0.1.0",
    "what": "documents",
    "where": "document",
    "without": (("scifact", "dense"),),
}
"""Example values of notes, by name."""

OF_A_NOTE: dict[str, dict[str, Any]] = {
    "depends-on-overlap": {
        "run": "bm25 on fixed-80",
        "baseline": "bm25 on fixed-150",
        "measure": "R(per=target, budget=600)",
        "reason": "depends on how much of a passage a chunk must contain (any +0.1610***, majority -0.1200**, whole "
        "-0.4530***)",
    },
    "relevance-level-decides": {"highest": 3.0, "measure": "P@10", "now": "better", "then": "not significant"},
    "unjudged-by-people": {"share": 0.23, "k": 10},
    "across-left-out": {"source": "beir.csv"},
    "spans-unmatched": {"count": 4, "question": "Where is it?"},
    "across-missing": {"runs": (("dense", ("scifact",)),)},
    "across-one-dataset-decides": {"pairs": (("bm25", "dense", "scifact", "reversed"),)},
    "across-every-dataset-needed": {"pairs": (("bm25", "dense"),)},
    "directions-by-name": {"more": ("faithfulness",), "less": ("error_rate",)},
    "across-opposite": {"pairs": (("bm25", "dense", "better", "scifact"),)},
    "across-percent": {"source": "beir.csv"},
    "across-shared-datasets": {"shared": ("scifact", "cranfield")},
    "across-unused-datasets": {"names": ("Touche2020",)},
    "chunkings-text-read": {"measure": "R(per=target)@10", "runs": (("bm25 on whole", "first", 900.0),)},
    "chunks-over-budget": {"chunking": "whole", "tokens": 900.0, "measures": ("R(per=target, budget=240)",)},
    "compared-on-shared-queries": {"runs": (("dense", 3, ("q1", "q2", "q3")),)},
    "cutoff-deeper-than-lists": {"measures": ("R@1000",), "depth": 100},
    "dataset-error": {"kind": "unknown-document"},
    "datasets-merged": {"column": "dataset"},
    "documents-address-judge": {"documents": ("d12", "d40")},
    "different-texts-same-id": {"documents": ("d12", "d40")},
    "texts-differ": {"documents": ("d12", "d40")},
    "few-documents-drawn": {"documents": 12, "enough": 16},
    "fewer-passages": {"drawn": 12, "wanted": 200},
    "corpus-not-searched": {"documents": 250_000, "most": 10_000},
    "judgments-used": {"judgments": 60, "judges": ("ann", "bob"), "file": "judgments.jsonl"},
    "questions-moved": {"count": 3, "before": "q4", "after": "q5"},
    "questions-changed": {"count": 1, "judgments": 6, "query": "q4", "before": "Where is it?", "after": "Who is it?"},
    "mostly-tied": {"pairs": 3, "ties": 40},
    "long-questions": {"queries": ("q7",), "longest": 12_000},
    "exports-joined": {"judges": ("anna",), "conflicts": 2},
    "document-ids-differ": {"run": ("D1",), "qrels": ("d1",), "difference": "case"},
    "empty-lists": {"measures": ()},
    "empty-queries-dropped": {"queries": ("q1", "q2", "q3")},
    "facts-not-found": {"count": 1},
    "fusion-norm-not-tried": {"reason": "the highest score of a list is not positive"},
    "gate-dialects-differ": {"baseline": "baseline.json"},
    "gate-measure-not-checked": {"measure": "Latency", "reason": "machine"},
    "gate-rule-direction": {"rule": "Latency >= 0.2", "measure": "Latency"},
    "gate-too-few-queries": {"kind": "drop"},
    "gate-depends-on-overlap": {"rules": (("no significant drop in P@10", "bm25 on fixed-150"),)},
    "gate-overlap-unknown": {"source": "baseline.json"},
    "gate-undecided": {"rules": (("no significant drop in nDCG@10", "dense"),)},
    "gate-versions-differ": {"baseline": "baseline.json"},
    "geometric-means-tested": {"measures": ("GMAP",)},
    "grades-below-rel": {"measures": ("P@10",)},
    "interval-and-p-disagree": {"pairs": (("dense", "bm25", "nDCG@10", "0.06", False),)},
    "uncertain-difference": {"pairs": (("dense", "bm25", "nDCG@10", "0.04", True),), "alike": True},
    "judged-texts-changed": {"documents": ("d7",)},
    "judges-resolved": {"judges": ("ann", "bob"), "rule": "majority"},
    "lists-shorter-than-cutoff": {"limits": ("P@10 cannot exceed 0.5",)},
    "measures-with-own-cutoff": {"measures": ("R@20",)},
    "mteb-selected": {"subset": "default", "split": "test"},
    "no-distractors": {"measures": ("Confusion@3",)},
    "no-grade-zero": {"measures": ("Bpref",)},
    "no-judged-document": {"run": ("D1",), "qrels": ("d7",)},
    "no-relevant-document": {"measures": ()},
    "no-relevant-for-measure": {"level": 2, "measures": ("RR@10",)},
    "no-shared-query": {"run": ("Q1",)},
    "no-such-grade": {"level": 2, "measures": ("P(rel=2)@5",)},
    "no-targets": {"measures": ("R(per=target)@10",)},
    "no-unanswerable-query": {"measures": ("Abstain",)},
    "not-tested": {"pairs": (), "reason": "one query only"},
    "ranks-ignored": {"column": "rank"},
    "read-as": {"other": "run"},
    "repetitions": {"column": "seed"},
    "result-file-missing": {"file": "corpus.parquet"},
    "result-means-differ": {"examples": ("nDCG@10 of dense",)},
    "run-not-measured": {"reason": "it failed on every query"},
    "split-chosen": {"others": ("train", "dev")},
    "rows-shuffled": {"most": 20_000_000},
    "step-slice": {"value": "factoid"},
    "unknown-documents": {"examples": ("D1",)},
}
"""Values that only one note uses in this way."""


def notes() -> str:
    """Every note by severity: its code and its text, with example values."""
    rows = [
        (code(name), severity, sample(name, wording.text))
        for severity in SEVERITIES
        for name, wording in sorted(wordings().items())
        if wording.severity == severity and name != "text"
    ]
    return table(("code", "severity", "text, with example values"), rows)


def sample(name: str, text: Text) -> str:
    """The text of a note with example values."""
    own = OF_A_NOTE.get(name, {})
    values = {**own, **SAMPLES, **own}  # its own first: the order of the levels of `mteb-selected`
    if isinstance(text, str):
        return fill(text, values)
    names = inspect.signature(text).parameters
    return text(**{key: value for key, value in values.items() if key in names or key in own})


# The command line


def command_line() -> str:
    """The help of every verb."""
    parts = []
    for verb, what in VERBS.items():
        function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
        parts.append(f"## steelyard {verb} {{ #{verb} }}")
        parts.append(f"{what[:1].upper()}{what[1:]}.")
        parts.append(fenced(verb_parser(verb, function, 80, everything=True).format_help()))
    return "\n\n".join(parts)


def options() -> str:
    """Every option and every setting of the command line: its verbs and its meaning."""
    verbs: dict[str, list[str]] = {}
    meanings: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for verb in VERBS:
        function = getattr(import_module(f"steelyard.cli.{_MODULES.get(verb, verb)}"), verb)
        parser = verb_parser(verb, function, 80, everything=True)
        named = [action for action in parser._actions if action.option_strings]
        rows = [
            (", ".join(map(code, sorted(action.option_strings, key=len))), str(action.help).replace("%%", "%"))
            for action in named
            if not isinstance(action, argparse._HelpAction)
        ]
        counts[verb] = len(rows)
        for name, help in [*rows, *((code(f"{name}="), param.about.help) for name, param in parser.settings.items())]:
            verbs.setdefault(name, []).append(verb)
            first = re.split(r"(?<![.])[.;] |[.]? \[", help)[0].rstrip(".")
            meanings.setdefault(name, Counter())[first] += 1
    every = [(name, ", ".join(verbs[name]), meanings[name].most_common(1)[0][0]) for name in sorted(verbs)]
    settings = [row for row in every if row[0].endswith("=`")]
    chosen = [row for row in every if row not in settings]
    return (
        f"There are {counts.total()} options of {len(VERBS)} verbs, with {len(chosen)} names:\n\n"
        f"{table(('option', 'verbs', 'meaning'), chosen)}\n\n"
        "What few commands need is a setting, `--set NAME=VALUE`, with the name that it has in Python:\n\n"
        f"{table(('setting', 'verbs', 'meaning'), settings)}"
    )


def verbs() -> str:
    """Every verb with its description."""
    return table(("verb", "what it does"), ((f"[{verb}](#{verb})", what) for verb, what in VERBS.items()))


# Python


def api(names: Iterable[str]) -> str:
    """Headings and directives for public names of `steelyard`, where they are defined."""
    parts = []
    for name in names:
        value = getattr(sy, name)
        parts.append(
            f"::: {value.__module__}.{value.__qualname__}\n    options:\n"
            f"      heading: steelyard.{name}\n      toc_label: {name}"
        )
    return "\n\n".join(parts)


def api_names(names: Iterable[str]) -> str:
    """Public names of `steelyard`, each with the first line of its docstring."""
    lines = {name: inspect.cleandoc(getattr(sy, name).__doc__).partition("\n")[0] for name in names}
    return table(("name", "what it is"), ((code(f"steelyard.{name}"), line) for name, line in lines.items()))
