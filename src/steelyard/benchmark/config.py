"""bench.yaml: read with its line numbers, and checked before anything runs. All problems are reported at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, create_model, field_validator

from steelyard.benchmark.chunkings import checked_rows
from steelyard.benchmark.specs import Place, Problem, Spec, named_entry, specs_of, without_corpus
from steelyard.comparison.rules import Rule, parse_rule
from steelyard.comparison.scores import COMPOSITE, read_weights
from steelyard.comparison.slices import COMPLEXITY
from steelyard.comparison.stages import check_splits
from steelyard.comparison.testing import ComparisonPlan
from steelyard.datasets import Dataset
from steelyard.dialects import Dialect, dialect, dialects
from steelyard.errors import InputError, MeasureError, NoQrelsError, SteelyardError, did_you_mean, problem_report
from steelyard.io.datasets import FORMS, dataset_named, path_and_options
from steelyard.io.files import no_such_file, reading, write_file
from steelyard.io.text import shortened
from steelyard.io.unpacking import check_aliases
from steelyard.masking import masked_settings
from steelyard.measures.grammar import Measure
from steelyard.options import POLICIES, help_text, resolve
from steelyard.qrels import Qrels
from steelyard.statistics.corrections import check_correction
from steelyard.wording import counted


@dataclass(frozen=True)
class LocatedYaml:
    """The value of a YAML file, and the line of each of its parts."""

    value: Any
    lines: dict[Place, int]

    def line(self, place: Place) -> int | None:
        """The line of a part, or of the nearest part that contains it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


def read_yaml(path: Path) -> LocatedYaml:
    """Read a YAML file; a repeated key is an error."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}).") from None
    lines: dict[Place, int] = {}
    repeated: list[str] = []
    try:
        with reading(path):
            value, node = None, yaml.compose(text, Loader=yaml.SafeLoader)
            if node is not None:
                check_aliases(node)
                value = _construct(node, (), lines, repeated, yaml.SafeLoader(""))
    except InputError as error:
        if isinstance(error.__cause__, yaml.YAMLError):
            raise InputError(f"{path} is not YAML: {error.__cause__}") from None
        raise
    if repeated:
        raise InputError(problem_report(f"{path}: repeated keys:", repeated, "Keep one of each."))
    return LocatedYaml(value, lines)


def _construct(node: Any, place: Place, lines: dict[Place, int], repeated: list[str], loader: Any) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if key in mapping:
                repeated.append(f"line {key_node.start_mark.line + 1}: {key}")
            mapping[key] = _construct(value_node, (*place, key), lines, repeated, loader)
            lines[place + (key,)] = key_node.start_mark.line + 1
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, (*place, number), lines, repeated, loader) for number, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)


class Gate(BaseModel):
    """What `steelyard gate` checks for every run: rules, and the number of queries that a run may fail on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: list[str] = []
    allow_failed: int = Field(0, ge=0)


if TYPE_CHECKING:
    _Policies = BaseModel
else:
    _fields = {name: (str | None, Field(None, description=help_text(name))) for name in POLICIES}
    _Policies = create_model("_Policies", **_fields | {"rel": (float | None, _fields["rel"][1])})


class Bench(_Policies):
    """The settings of a bench: `sy.bench(Bench(dataset="demo", retrievers=["bm25-okapi"], measures=["nDCG@10"]))`."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True, use_attribute_docstrings=True)

    dataset: Any = None
    """`demo`, `ir_datasets:ID`, a path relative to bench.yaml, or `{path: ..., options}` with the options of
    `Dataset.read`."""
    queries: Any = None
    """In place of `dataset`: a list of questions, as CSV, TSV, JSON, JSON lines, Parquet or plain text; or `{path:
    FILE, column: NAME, id: NAME}`."""
    corpus: Any = None
    """With `queries`: the documents, for retrievers that index them: a file, a folder of text files, or a database, as
    in `{postgres: URL, table: NAME, id: NAME, text: NAME}`."""
    qrels: Any = None
    """The judgments: a file, or `{path: FILE, query_id: NAME, doc_id: NAME, grade: NAME}`. Without it,
    `judgments.jsonl` next to bench.yaml is used if it exists; `steelyard judge RESULT` writes it."""
    datasets: dict[str, Any] | None = None
    """In place of `dataset`: `{name: path, ...}`. Every retriever is run on each, and there is one result per dataset
    and one across them."""
    retrievers: list[Any] = Field(min_length=1)
    """A list: a name, `name: {settings}`, `python: module:attribute`, or `run: FILE`. A setting that is a list is a
    sweep."""
    chunkers: list[Any] = Field(default=[])
    """Cut the documents into chunks, and run every retriever on every chunking: `fixed`, `sentence`, `recursive`,
    `whole` with settings, `python: module:function`, or `chunks: FILE` (chunk_id, doc_id, start, end, text). A
    retriever with `chunker: NAME` is run on that chunking only."""
    evidence: Any = None
    """Which chunks are relevant: a file, or `{path: FILE}` with options; the dataset then needs no qrels. Without it,
    every chunk of a relevant document is relevant."""
    overlap: Literal["any", "majority", "whole"] = "any"
    """How much of a span a chunk must contain: `any`, `majority` or `whole`."""
    dialect: str = "steelyard"
    """Whose definitions of the measures are used."""
    measures: list[str] = Field(default=[])
    """As in `[nDCG@10, R@20]`; the first ranks the runs. Optional if the dialect has measures of its own, with
    `queries` (nDCG@10), and with `chunkers` (SpanR, SpanP, SpanIoU and R(per=target), within 1,000 tokens)."""
    depth: int = Field(100, ge=1)
    """Number of documents that every retriever returns per query."""
    at: list[int] | None = None
    """Cutoffs, with one row per run and cutoff: `[1, 3]`."""
    composite: str | dict[str, float] | None = None
    """A weighted score to rank by: `default`, or measures with weights."""
    baseline: str | None = None
    """The run that every other run is compared with. Without it, all pairs are compared."""
    test: str = "t"
    """The significance test of differences."""
    correction: str = "holm"
    """The correction for several tests: `none`, `bonferroni`, `holm` or `bh`."""
    by: str | None = None
    """Slice the results by a column of the queries, or by `complexity`."""
    gate: Gate = Gate(rules=[], allow_failed=0)
    """What `steelyard gate` checks for every run: a list of rules, or `{rules: [...], allow_failed: N}`."""
    history: str | None = None
    """A file relative to bench.yaml, as `history.jsonl`: every run of the bench adds one line to it."""
    warmup: int = Field(3, ge=0)
    """Number of queries that every retriever runs before its time is measured."""
    seed: int = Field(0, ge=0)
    """The seed of intervals and tests."""

    @field_validator("measures", "composite", mode="before")
    @classmethod
    def _measures_as_texts(cls, value: Any, checked: ValidationInfo) -> Any:
        """Measures may be given as values."""
        chosen = checked.data.get("dialect", "steelyard")
        if isinstance(value, Mapping):
            return {_as_text(one, chosen): weight for one, weight in value.items()}
        return [_as_text(one, chosen) for one in value] if isinstance(value, (list, tuple)) else value

    @field_validator("gate", mode="before")
    @classmethod
    def _gate_from_list(cls, value: Any) -> Any:
        """A list for `gate:` has its rules."""
        return {"rules": value} if isinstance(value, (list, tuple)) else value

    @field_validator("retrievers", mode="before")
    @classmethod
    def _retrievers_from_mapping(cls, value: Any) -> Any:
        """A mapping for `retrievers:` has the labels of rows, or the names of retrievers with their settings."""
        return [named_entry(str(key), entry) for key, entry in value.items()] if isinstance(value, Mapping) else value

    @property
    def source(self) -> Any:
        """The dataset as `dataset_named` takes it: `dataset`, or its parts."""
        if self.queries is not None:
            return {"queries": self.queries, "corpus": self.corpus, "qrels": self.qrels}
        if self.qrels is None:
            return self.dataset
        if isinstance(self.dataset, Dataset):
            return replace(self.dataset, qrels=Qrels.of(self.qrels))
        path, options = path_and_options(self.dataset)
        return {**options, "path": path, "qrels": self.qrels}

    def policies(self) -> dict[str, str | None]:
        """The policies that the bench sets."""
        return {name: getattr(self, name) for name in POLICIES}


def _as_text(measure: Any, chosen: str) -> Any:
    """The text that a dialect reads as the measure; anything else than a measure unchanged."""
    if not isinstance(measure, Measure) or chosen not in dialects():
        return measure
    for text in (str(measure), measure.spelled):
        with suppress(MeasureError):
            if dialect(chosen).measure(text) == measure:
                return text
    raise ValueError(f"the dialect {chosen} has another {measure.name}; name its own measure by a text")


NO_RETRIEVER = object()  # In place of the retrievers of a bench that has none, so that the rest of it can be checked.

CHUNK_MEASURES = [f"{name}budget=1000)" for name in ("SpanR(", "SpanP(", "SpanIoU(", "R(per=target, ")]
"""The measures of a bench of chunkers that names none; those of spans if the evidence has spans."""


def read_bench(path: Path) -> tuple[Bench, list[Spec]]:
    """The checked bench of a YAML file, and its retrievers."""
    located = read_yaml(path)
    if not isinstance(located.value, Mapping):
        raise InputError("expected `dataset`, `retrievers` and `measures`; `steelyard init` writes an example.", path)
    return check_bench(dict(located.value), path, located)


def check_bench(
    source: Bench | Mapping[str, Any], path: Path | None = None, located: LocatedYaml | None = None
) -> tuple[Bench, list[Spec]]:
    """The bench and its retrievers, or one report of all problems."""
    bench, problems = (source, []) if isinstance(source, Bench) else _validated(source)
    folder = path.parent if path else Path()
    specs, spec_problems = specs_of([entry for entry in bench.retrievers if entry is not NO_RETRIEVER], folder)
    problems += [(("retrievers", *place), text) for place, text in spec_problems]
    problems += [*_setting_problems(bench, specs, folder), *_file_problems(bench, folder)]
    if not any(place[:1] in (("dataset",), ("datasets",)) for place, _ in problems):
        problems += _datasets_problems(bench, specs)
    if bench.queries is not None and bench.corpus is None:
        problems += [(("retrievers", spec.entry), without_corpus(spec)) for spec in specs if spec.needs_corpus]
    if problems:
        problems += _dataset_problems(bench, folder, {place[:1] for place, _ in problems})
        lines = [located.line(place) if located else None for place, _ in problems]
        texts = [text if n is None else f"line {n}: {text}" for n, (_, text) in zip(lines, problems, strict=True)]
        where = path or "the bench"
        raise InputError(problem_report(f"{where}: {counted(len(texts), 'problem')}; nothing was run:", texts))
    if not bench.measures and not dialect(bench.dialect).measures:
        bench = bench.model_copy(update={"measures": CHUNK_MEASURES if bench.chunkers else ["nDCG@10"]})
    return bench, specs


def _datasets_problems(bench: Bench, specs: Sequence[Spec]) -> Iterator[Problem]:
    """Keys that exclude or need each other; names that cannot be folders; what belongs to one dataset only."""
    if bench.datasets is None:
        if bench.dataset is None and bench.queries is None:
            yield (), "`dataset` is missing, or `queries`, a file of questions"
        elif bench.dataset is not None and bench.queries is not None:
            yield ("queries",), "`dataset` and `queries` are both given; keep one of them"
        elif bench.corpus is not None and bench.queries is None:
            yield ("corpus",), "`corpus` belongs to `queries`; for a dataset: `dataset: {path: DIR, corpus: FILE}`"
        return
    if bench.dataset is not None:
        yield ("datasets",), "`dataset` and `datasets` are both given; keep one of them"
    if len(bench.datasets) < 2:
        yield ("datasets",), "expected two datasets or more; use `dataset` for one"
    folded: dict[str, str] = {}
    for name in bench.datasets:
        place = ("datasets", name)
        if not re.fullmatch(r"\w[\w.-]*", name):
            yield place, f"the name {name!r} is also that of a folder; use letters, digits, `-`, `_` and `.`"
        if (other := folded.setdefault(name.lower(), name)) != name:
            yield place, f"{other!r} and {name!r} differ in case only; rename one"
    reason = "belongs to one dataset: run a bench for each, and `steelyard across` over their results"
    for spec in specs:
        if spec.run is not None:
            yield ("retrievers", spec.entry), f"{spec.label}: a finished run {reason}"
    if bench.evidence is not None:
        yield ("evidence",), f"a file of evidence {reason}"


def _validated(source: Mapping[str, Any]) -> tuple[Bench, list[Problem]]:
    """The bench, and the problems of keys. A wrong key is left out and a needed one replaced, to check the rest."""
    values = {str(key): value for key, value in source.items()}
    try:
        return Bench(**values), []
    except ValidationError as error:
        problems: list[Problem] = [(tuple(detail["loc"]), _validation_text(detail)) for detail in error.errors()]
    wrong = {place[0] for place, _ in problems}
    needed: dict[str, Any] = {"retrievers": [NO_RETRIEVER]}
    if "measures" in wrong:  # They are needed, and the rules of the gate cannot be checked without them.
        needed["measures"] = ["nDCG@10"]
        wrong.add("gate")
    right = {key: value for key, value in values.items() if key not in wrong}
    if "queries" not in right:
        needed["dataset"] = "demo"
    return Bench(**{**needed, **right}), problems


def _validation_text(error: Any) -> str:
    """A validation error of pydantic in our words."""
    key = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        keys = list((Gate if error["loc"][0] == "gate" and len(error["loc"]) > 1 else Bench).model_fields)
        close = " Did you mean measures?" if key in ("metrics", "metric") else did_you_mean(key, keys)
        return f"unknown key {key!r}." + (close or f" Known: {', '.join(keys)}")
    if error["type"] == "missing":
        return f"`{key}` is missing"
    if error["type"] == "too_short":
        return f"{key}: empty; name at least one"
    problem = error["msg"].removeprefix("Value error, ")
    return f"{key}: {problem}, got {shortened(repr(masked_settings(error['input'])), 300)}"


def _setting_problems(bench: Bench, specs: Sequence[Spec], folder: Path) -> list[Problem]:
    """Problems of values: unknown measures, chunkers, tests, rules, a baseline that is not a row."""
    problems: list[Problem] = []

    def check(place: Place, action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except SteelyardError as error:
            problems.append((place, str(error)))
            return None

    chosen = check(("dialect",), dialect, bench.dialect)
    if bench.composite is not None:
        check(("composite",), read_weights, bench.composite)
    if chosen is not None:
        for number, text in enumerate(bench.measures):
            check(("measures", number), _measures, chosen, text)
        for name, policy in bench.policies().items():
            check((name,), resolve, chosen.policies, {name: policy})
        if not bench.measures and not chosen.measures and bench.queries is None and not bench.chunkers:
            problems.append(((), "no measures; name at least one, as in `measures: [nDCG@10]`"))
        if isinstance(bench.composite, Mapping):
            for text in bench.composite:
                check(("composite", text), chosen.measure, text)
    labels, faults = checked_rows(bench.chunkers, specs, bench.by, folder)
    problems += faults
    if bench.evidence is not None and not bench.chunkers:
        text = "evidence gives qrels for chunks, and there are no chunkers; add some, as in `chunkers: [whole]`. If "
        own = "the retrievers return chunks of their own, remove it and use `steelyard evidence` on documents.parquet"
        problems.append((("evidence",), f"{text}{own} of the result"))
    before = len(problems)
    check(("correction",), check_correction, bench.correction)
    plan = ComparisonPlan(bench.test, bench.correction if len(problems) == before else "none")
    check(("test",), plan.checked)
    if bench.baseline is not None and labels and not faults:
        check(("baseline",), plan.with_baseline, bench.baseline, labels)
    for number, text in enumerate(bench.gate.rules):
        rule = check(("gate", number), parse_rule, text)
        if rule is not None and chosen is not None:
            check(("gate", number), _check_rule_measure, rule, bench, chosen)
    wrong = [(("at", at), f"the cutoff is {k}; expected 1 or more") for at, k in enumerate(bench.at or []) if k < 1]
    return [*problems, *wrong]


def _measures(chosen: Dialect, text: str) -> list[Measure]:
    return [chosen.measure(name) for name in chosen.expand([text])]


def _check_rule_measure(rule: Rule, bench: Bench, chosen: Dialect) -> None:
    """Raise for a rule on a measure that the bench does not have; the ceiling of a stage may be in any measure."""
    if rule.ceiling is not None:
        check_splits(rule.ceiling[1], chosen.measure(rule.ceiling[1]))
        return
    default = CHUNK_MEASURES if bench.chunkers and not chosen.measures else chosen.measures
    texts = [*(bench.measures or default), *([COMPOSITE] if bench.composite is not None else [])]
    keys = [f"{text} at {k}" for text in texts for k in bench.at] if bench.at else texts
    if rule.measure.lower() in map(str.lower, keys):
        return
    definitions = set()
    for text in keys:
        with suppress(MeasureError):
            definitions |= {measure.spelled for measure in _measures(chosen, text)}
    with suppress(MeasureError):
        if chosen.measure(rule.measure).spelled in definitions:
            return
    raise InputError(
        f"the rule {rule.text!r} needs {rule.measure!r}, which is not among the measures {', '.join(keys)}."
        f"{did_you_mean(rule.measure, keys)}"
    )


def _file_problems(bench: Bench, folder: Path) -> Iterator[Problem]:
    """A dataset or evidence file that does not exist; nothing is read."""
    sources: dict[Place, Any] = {("datasets", name): source for name, source in (bench.datasets or {}).items()}
    if bench.dataset is not None:
        sources[("dataset",)] = bench.dataset
    for place, source in sources.items():
        if isinstance(source, Dataset):
            continue
        try:
            path = path_and_options(source)[0]
        except InputError as error:
            several = isinstance(source, list) and place == ("dataset",)
            hint = "; for several datasets: `datasets: {name: path, ...}`" if several else ""
            yield place, str(error).rstrip(".") + hint
            continue
        name = str(path)
        if path is None or name == "demo" or name.startswith("ir_datasets:"):
            continue
        if not os.path.exists(folder / path) and not os.path.exists(path):
            yield place, f"there is no dataset {name!r}.{did_you_mean(name, ['demo'])} Expected {FORMS}"
    for part in ("queries", "corpus", "qrels", "evidence"):
        named = getattr(bench, part)
        named = named.get("path") if isinstance(named, Mapping) else named
        beside = [folder / named] if isinstance(named, (str, Path)) else []
        if part == "qrels" and beside and isinstance(bench.dataset, (str, Path)):
            beside.append(folder / bench.dataset / str(named))
        if beside and not any(map(os.path.exists, beside)):
            text = f"{part}: {no_such_file(beside[0])}"
            yield (part,), f"there is no evidence file {beside[0]}" if part == "evidence" else text


def _dataset_problems(bench: Bench, folder: Path, reported: set[Place]) -> Iterator[Problem]:
    """What is wrong with the options of the dataset, and with `by`; it is read only if there are other problems."""
    if {("dataset",), ("datasets",)} & reported or bench.dataset is None or isinstance(bench.dataset, Dataset):
        return
    if bench.by is not None or isinstance(bench.dataset, Mapping):
        key = "dataset"
        try:
            dataset = dataset_named(bench.dataset, folder)
            key = "by"
            check_by(bench, dataset)
        except NoQrelsError:
            return
        except SteelyardError as error:
            yield (key,), str(error)


def check_by(bench: Bench, dataset: Dataset) -> None:
    """Raise where `by` is neither `complexity` nor a column of the queries."""
    columns = dataset.queries.columns
    if bench.by is not None and bench.by != COMPLEXITY and bench.by not in columns:
        raise InputError(
            f"`by` is {bench.by!r}; expected {COMPLEXITY} or a column of the queries of {dataset.name!r}: "
            f"{', '.join(columns) or 'they have none'}.{did_you_mean(bench.by, [*columns, COMPLEXITY])}"
        )


def starter_path(folder: Path) -> Path:
    """The bench.yaml of a folder; an existing file is an error, since it is not overwritten."""
    path = folder / "bench.yaml"
    if path.exists():
        raise InputError(f"{path} exists already; choose another folder, or edit it.")
    return path


def write_starter(folder: Path) -> Path:
    """Write a starter bench.yaml to a folder; an existing file is not overwritten."""
    path = starter_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, (files("steelyard.benchmark") / "starter.yaml").read_bytes())
    return path
