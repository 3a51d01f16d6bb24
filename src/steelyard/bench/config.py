"""bench.yaml, checked whole before anything runs: every problem at once, with its line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator

from steelyard.bench.chunkers import labels_of, problems_of
from steelyard.bench.specs import Located, Spec, read_located, specs_of
from steelyard.comparison.rules import parse_rule
from steelyard.comparison.scores import read_weights
from steelyard.comparison.testing import ComparisonPlan
from steelyard.datasets import Dataset
from steelyard.datasets.reading import FORMS, path_and_options
from steelyard.dialects import dialect
from steelyard.errors import InputError, SteelyardError, did_you_mean, problem_report
from steelyard.io.files import write_file
from steelyard.options import POLICIES, resolve
from steelyard.wording import counted


class Gate(BaseModel):
    """What `steelyard gate` checks of every run: rules, and how many queries one may have failed on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rules: list[str] = []
    allow_failed: int = Field(0, ge=0)


if TYPE_CHECKING:
    _Policies = BaseModel
else:
    _Policies = create_model("_Policies", **dict.fromkeys(POLICIES, (str | None, None)))


class Bench(_Policies):
    """What a bench runs. `sy.bench(Bench(dataset="demo", retrievers=["bm25-okapi"], measures=["nDCG@10"]))`."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, frozen=True)

    dataset: Any
    retrievers: list[Any] = Field(min_length=1)
    chunkers: list[Any] = Field(default=[])
    evidence: Any = None
    overlap: Literal["any", "majority", "whole"] = "any"
    measures: list[str] = Field(default=[])
    depth: int = Field(100, ge=1)
    dialect: str = "steelyard"
    at: list[int] | None = None
    composite: str | dict[str, float] | None = None
    baseline: str | None = None
    test: str = "t"
    correction: str = "holm"
    by: str | None = None
    gate: Gate = Gate(rules=[], allow_failed=0)
    warmup: int = Field(3, ge=0)
    seed: int = 0

    @field_validator("gate", mode="before")
    @classmethod
    def _rules_alone(cls, given: Any) -> Any:
        """A list under `gate:` is its rules."""
        return {"rules": given} if isinstance(given, (list, tuple)) else given

    def policies(self) -> dict[str, str | None]:
        """The policies that were chosen."""
        return {name: getattr(self, name) for name in POLICIES}


def read_bench(path: Path) -> tuple[Bench, list[Spec]]:
    """A checked bench from its YAML file."""
    located = read_located(path)
    if not isinstance(located.value, Mapping):
        raise InputError(
            f"{path}: expected `dataset`, `retrievers` and `measures`; `steelyard init` writes an example."
        )
    return check_bench(dict(located.value), path, located)


def check_bench(
    given: Bench | Mapping[str, Any], path: Path | None = None, located: Located | None = None
) -> tuple[Bench, list[Spec]]:
    """The bench and its retrievers, or one report of everything that is wrong."""
    where = str(path) if path else "the bench"
    shaped, problems = (
        (given, [])
        if isinstance(given, Bench)
        else _shaped({str(key): value for key, value in given.items()})
    )
    if shaped is None:
        raise _report(where, located, problems)
    made = shaped
    folder = path.parent if path else Path()
    specs, found = specs_of(made.retrievers, folder)
    problems += [(("retrievers", *place), what) for place, what in found]
    problems += _problems(made, specs)
    problems += _dataset_problems(made.dataset, folder)
    if problems:
        raise _report(where, located, problems)
    return made, specs


def _dataset_problems(dataset: Any, folder: Path) -> list[tuple[tuple[Any, ...], str]]:
    """What is wrong with the dataset's name, as far as it can be seen without reading it."""
    if isinstance(dataset, Dataset):
        return []
    try:
        path = path_and_options(dataset)[0]
    except InputError as error:
        return [(("dataset",), str(error).rstrip("."))]
    named = str(path)
    if named == "demo" or named.startswith("ir_datasets:") or (folder / path).exists() or Path(path).exists():
        return []
    near = did_you_mean(named, ["demo"])
    return [(("dataset",), f"there is no dataset {named!r}.{near} Expected {FORMS}")]


def _shaped(given: dict[str, Any]) -> tuple[Bench | None, list[tuple[tuple[Any, ...], str]]]:
    """The bench with what is wrong in its shape left out, and what that is; None where too little is left."""
    try:
        return Bench(**given), []
    except ValidationError as error:
        problems = [(tuple(each["loc"]), _told(each)) for each in error.errors()]
    wrong = {place[0] for place, _ in problems}
    try:
        return Bench(**{key: value for key, value in given.items() if key not in wrong}), problems
    except ValidationError:
        return None, problems


def _problems(bench: Bench, specs: list[Spec]) -> list[tuple[tuple[Any, ...], str]]:
    """What is wrong beyond the shape of the file."""
    problems: list[tuple[tuple[Any, ...], str]] = []

    def check(place: tuple[Any, ...], action: Any) -> Any:
        try:
            return action()
        except SteelyardError as error:
            problems.append((place, str(error)))
            return None

    spoken = check(("dialect",), lambda: dialect(bench.dialect))
    if spoken is not None:
        for number, text in enumerate(bench.measures):
            check(
                ("measures", number),
                lambda text=text: [spoken.measure(each) for each in spoken.expand([text])],
            )
        check((), lambda: resolve(spoken.policies, bench.policies()))
        if not bench.measures and not spoken.measures:
            problems.append(((), "no measures; name at least one, as in `measures: [nDCG@10]`"))
    if bench.composite is not None:
        check(("composite",), lambda: read_weights(bench.composite))
    wrong = problems_of(bench.chunkers, specs, bench.by)
    problems += wrong
    labels = () if wrong else labels_of(bench.chunkers, specs)
    if bench.evidence is not None and not bench.chunkers:
        problems.append(
            (("evidence",), "evidence judges chunks; name chunkers too, as in `chunkers: [whole]`")
        )
    plan = ComparisonPlan(bench.test, bench.correction)
    baseline = bench.baseline if labels else None
    check(
        ("baseline",) if bench.baseline is not None else (),
        lambda: plan.checked().with_baseline(baseline, labels),
    )
    for number, rule in enumerate(bench.gate.rules):
        check(("gate", number), lambda rule=rule: parse_rule(rule))
    for number, k in enumerate(bench.at or []):
        if k < 1:
            problems.append((("at", number), f"the cutoff {k} is not 1 or more"))
    return problems


def _told(error: Any) -> str:
    key = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        known = list((Gate if error["loc"][0] == "gate" and len(error["loc"]) > 1 else Bench).model_fields)
        return f"there is no key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}"
    if error["type"] == "missing":
        return f"`{key}` is missing"
    return f"{key}: {error['msg']}, got {error['input']!r}"


def _report(where: str, located: Located | None, problems: list[tuple[tuple[Any, ...], str]]) -> InputError:
    told = []
    for place, what in problems:
        line = located.line(place) if located else None
        told.append(f"line {line}: {what}" if line is not None else what)
    count = counted(len(told), "problem")
    return InputError(problem_report(f"{where}: {count}; nothing was run:", told))


STARTER = """\
# A bench: retrievers run over a dataset, timed, measured and compared.
#   steelyard bench bench.yaml

# `demo` is bundled. Or a path: a folder with corpus.jsonl, queries.jsonl and qrels.tsv (BEIR), AutoRAG
# parquet files, MultiHop-RAG or LlamaIndex JSON, MS MARCO tables, or a CSV with its columns named.
dataset: demo

# Documents asked of every retriever.
depth: 100

# A name, or a name with settings. A setting given as a list makes one retriever for each value.
# `name:` among the settings is the row's label.
retrievers:
  - bm25-okapi: {k1: 1.2, b: 0.75}
  - bm25-plus
  - dense                                    # latent semantic analysis, fitted on the corpus
  - hybrid: {of: [bm25-okapi, dense], fuse: rrf}
  - random: {seed: 42}
  # - python: my_package.search:retrieve     # any function of your own
  # - run: old/bm25.run                      # a finished run joins the table

# `steelyard measures` lists them; `steelyard explain nDCG@10` says what one is, exactly.
measures: [nDCG@10, R@20, RR@10, DR@20, Confusion@3, Latency]

# Whose definitions: `steelyard dialects` lists them.
dialect: steelyard

# A weighted score to rank by: `default`, or measures with weights, as in {nDCG@10: 0.7, R@20: 0.3}.
composite: default

# Every retriever is tested against this one; leave it out to test every two.
baseline: bm25-okapi
test: t

# Slice the table by a column of the queries.
by: type

# What `steelyard gate` checks of every run (or of one: --run NAME), beside the rules it is given.
# With `{rules: [...], allow_failed: 2}`, a run may have failed on two queries and pass.
# gate:
#   - no significant drop in nDCG@10
#   - nDCG@10 >= baseline - 0.02
"""


def write_starter(folder: Path) -> Path:
    """Write bench.yaml into a folder; one that is there already is left alone."""
    path = folder / "bench.yaml"
    if path.exists():
        raise InputError(f"{path} is there already; name another folder, or edit it.")
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, STARTER.encode())
    return path
