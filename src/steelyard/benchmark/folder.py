"""The result folder of a bench: reading it back, and the files that are left over from an earlier result."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from steelyard.alignment.ranges import Ranges
from steelyard.benchmark import comparison as comparing
from steelyard.benchmark.cache import CACHE, HELD_BY, LOCK, is_cache_file
from steelyard.benchmark.chunkings import chunking_qrels
from steelyard.benchmark.comparison import STAGES_FILE
from steelyard.comparison.lists import ListComparison, compare_lists
from steelyard.comparison.result import Comparison
from steelyard.comparison.slices import COMPLEXITY
from steelyard.comparison.stages import Stages
from steelyard.dialects import dialect
from steelyard.errors import InputError, SteelyardError, problem_report
from steelyard.io.files import read_bytes, reading
from steelyard.io.unpacking import read_parquet
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note, note_from_dict, sentence
from steelyard.qrels import Qrels
from steelyard.quality.check import Check
from steelyard.report.page.subject import RANDOM, Subject
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted, worded

_Compared = TypeVar("_Compared")
RANGES = "ranges.parquet"
OVERLAPS_FILE = "overlaps.parquet"
OVERLAP_SCORES = "overlap_scores.parquet"
EVALUATION_FILES = (
    "scores.parquet", "pairs.parquet", "qrels.parquet", RANGES, OVERLAPS_FILE, OVERLAP_SCORES, "report.html"
)  # fmt: skip
"""The files that a result without qrels does not have."""

DOCUMENTS = "documents.parquet"  # The documents with their texts: doc_id, text, title, metadata.
ABOUT_TEXTS = ("texts-differ", "different-texts-same-id", "same-texts-different-ids")  # Notes that the page shows.
ACROSS_FILE = "across.json"  # What a bench over several datasets writes beside the folders of its datasets.
ACROSS_PAGE = "../report.html"  # The page over all datasets, from that of one of them.


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """A result folder that was read: its record (result.json), the comparison, computed again, and the texts.

    `evaluated` is the comparison, or None for a bench without qrels. `notes` report what the folder lacks: it can be
    read without its texts.
    """

    path: Path
    record: Mapping[str, Any]
    runs: Mapping[str, Run]
    qrels: Qrels
    evaluated: Comparison | None
    queries: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    documents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def comparison(self) -> Comparison:
        """The comparison of the runs; an error for a bench without qrels."""
        return required_comparison(self.evaluated, self.path)

    @property
    def lists(self) -> ListComparison:
        """How far the lists of the runs agree; it needs no qrels."""
        return lists_of(self.runs)

    def subject(self) -> Subject:
        """The subject of the report page."""
        record, comparison, folder = self.record, self.comparison, self.path
        about_texts = [note_from_dict(raw) for raw in record.get("notes", ()) if raw.get("code") in ABOUT_TEXTS]
        dataset, machine, rows, plan = record["dataset"], record["machine"], record["runs"], comparison.plan
        return Subject(
            comparison=comparison,
            title=str(dataset["name"]),
            queries=self.queries,
            columns=self.columns,
            documents=self.documents,
            costs=rows,
            approximation=record.get("approximation", ()),
            stages=_page_stages(folder, record),
            check=Check.from_dict(record["check"]).document() if record.get("check") else None,
            errors={row["run"]: row["errors"] for row in rows if row["errors"]},
            made={
                row["run"]: (", ".join(f"{key}={value}" for key, value in row["settings"].items()), row["fingerprint"])
                for row in rows
            },
            facts=[
                ("Dataset", f"{dataset['name']}, {counted(dataset['documents'], 'chunk')} of all chunkings")
                if record["settings"].get("chunkers")
                else ("Dataset", f"{dataset['name']}, {counted(dataset['documents'], 'document')}"),
                ("Fingerprint of the dataset", str(dataset["fingerprint"])),
                ("Depth", f"{counted(record['settings']['depth'], 'document')} per query"),
                ("Test", f"{plan.test}, correction {plan.correction}, seed {plan.seed}"),
                ("Machine", ", ".join(str(part) for part in machine.values())),
                ("Evaluated by", f"Steelyard {record['steelyard']}"),
            ],
            command=f"{command_of('report', folder)} -o report.html",
            whole=f"{command_of('report', folder)} -o report.html --full",
            controls=tuple(row["run"] for row in rows if row["settings"].get("retriever") == RANDOM),
            absent=tuple(map(sentence, [*self.notes, *about_texts])),
        )

    def to_html(
        self, path: str | Path | None = None, *, everything: bool = False, charts: str | Path | None = None
    ) -> str:
        """The tables as an HTML fragment; with a path, the report page is written there.

        With `charts`, every chart is also written as PNG and SVG to that folder.
        """
        from steelyard.report.page.page import write_page

        if path is not None:
            beside = Path(path).parent.resolve() == self.path.resolve()
            of_several = beside and (self.path.parent / ACROSS_FILE).is_file()
            subject = replace(self.subject(), across_page=ACROSS_PAGE) if of_several else self.subject()
            write_page(subject, path, everything=everything, charts=charts)
        return (self.evaluated or self.lists).to_html()

    def __repr__(self) -> str:
        return f"{self.evaluated or self.lists!r}\nRead from {self.path}."

    def _repr_html_(self) -> str:
        return self.to_html()


def lists_of(runs: Mapping[str, Run]) -> ListComparison:
    """The comparison of the lists of a bench; a run that failed on every query has none."""
    answered = {name: run for name, run in runs.items() if run.queries}
    compared = compare_lists(answered, require_shared=False) if answered else ListComparison((), (), 10)
    return replace(compared, advice="")


def required_comparison(comparison: _Compared | None, folder: Path) -> _Compared:
    """The comparison of a bench; an error if its dataset has no qrels."""
    if comparison is None:
        raise InputError(
            f"{folder}: the dataset of this bench has no qrels, so nothing was evaluated. "
            f"`{command_of('judge', folder)}` judges what came back; `.lists` compares the lists of the runs."
        )
    return comparison


def command_of(verb: str, path: Path) -> str:
    """The command with this verb for a file or a result folder."""
    return f"steelyard {verb} {shlex.quote(str(path))}"


def load_result(source: str | Path) -> ResultFolder:
    """Read a result folder, and compute its comparison again from its runs and qrels.

    An incomplete folder (the bench was stopped), or one that a newer version wrote, is an error. A folder without
    texts is read; `notes` report it.
    """
    path = Path(source)
    path = path.parent if path.name == "result.json" else path
    with reading(path):
        record = read_record(path)
        runs = _read_runs(path, record)
        frames = {what: read_frame(path / f"{what}.parquet") for what in ("queries", "documents")}
        missing = [what for what, frame in frames.items() if frame is None]
        notes = [note("result-file-missing", file=f"{what}.parquet", what=what) for what in missing]
        (queries, columns), documents = queries_of(frames["queries"]), documents_of(frames["documents"])
        if record["comparison"] is None:
            return ResultFolder(path, record, runs, Qrels({}), None, queries, columns, documents, tuple(notes))
        settings = record["settings"]
        qrels = read_qrels(path, settings)
        if documents and dialect(settings.get("dialect") or "steelyard").reads_texts(settings["measures"]):
            texts = _whole_texts(documents)
            runs = {name: Run(run, texts=texts) for name, run in runs.items()}
        parts = {rule: part.drop_nulls("doc_id") for rule, part in read_by_rule(path / OVERLAPS_FILE).items()}
        rules = {rule: Qrels.from_rows(part.rows(), qrels.queries).on_scale_of(qrels) for rule, part in parts.items()}
        comparison = _compare_again(record, qrels, rules, runs, columns, notes)
        comparison = comparing.with_notes(comparison, [note_from_dict(raw) for raw in record.get("chunk_notes", ())])
        comparison = replace(comparison, judge_command=command_of("judge", path))
        notes += _changed_means(record, comparison)
        return ResultFolder(path, record, runs, qrels, comparison, queries, columns, documents, tuple(notes))


def _whole_texts(documents: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The texts of documents with their titles."""
    return {doc: f"{title}\n{text}" if title else text for doc, (title, text) in documents.items()}


def _texts_in(path: Path) -> dict[str, str]:
    return _whole_texts(documents_of(read_frame(path / DOCUMENTS)))


def stages_of(source: Any, run: str | None, measure: Any, **options: Any) -> Stages:
    """Where a run of a result loses relevant documents: of its folder, or of a BenchResult or ResultFolder."""
    path = Path(folder_of(source))
    path = path.parent if path.name == "result.json" else path
    with reading(path):
        record = read_record(path)
        required_comparison(record["comparison"], path)
        qrels = read_qrels(path, record["settings"])
        if options.get("by") is not None and options.get("queries") is None:
            options["queries"] = path / "queries.parquet"
        frame = read_frame(path / STAGES_FILE)
        return comparing.split_run(path, record, frame, qrels, run, measure, lambda: _texts_in(path), **options)


def folder_of(source: Any) -> Any:
    """The folder of a BenchResult, BenchAcross or ResultFolder; anything else as it is."""
    folders = (getattr(source, name, None) for name in ("in_folder", "folder", "path"))
    return next((folder for folder in folders if folder is not None), source)


def read_record(path: Path, *, earlier: bool = False) -> dict[str, Any]:
    """The checked content of result.json, which is written last; `earlier`: also if a later bench did not finish."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise InputError(
            f"{path} {what}; expected a result folder, as `steelyard bench bench.yaml -o {path}` writes it."
        )
    file = path / "result.json"
    if not file.is_file() and (path / ACROSS_FILE).is_file():
        raise InputError(
            f"{path} has the results of several datasets; name the folder of one of them in it, or use "
            f"`{command_of('across', path)}` for all of them."
        )
    if not file.is_file():
        problem = f"{path} has no result.json: it is not a result folder, or its bench was stopped before the end."
        raise InputError(f"{problem} Run the bench again; it continues where it stopped.")
    if not earlier:
        _check_finished(path, file)
    try:
        record: dict[str, Any] = json.loads(read_bytes(file))
        _Record.model_validate(record)
    except ValidationError as error:
        details = error.errors(include_input=False, include_url=False)[:3]
        wrong = "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details)
        problem = f"is not the result of a bench, or was changed ({wrong}). Run the bench again to write it."
        raise InputError(problem, file) from None
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{file} cannot be read ({error}); run the bench again to write it.") from None
    if version_of(record) > version_of({"steelyard": __version__}):
        raise InputError(
            f"{path} was written by Steelyard {record['steelyard']}, which is newer than this one ({__version__}). "
            "Install that version or a later one to read it: pip install --upgrade steelyard."
        )
    return record


def _check_finished(path: Path, file: Path) -> None:
    """Raise if a bench in the folder, or over several datasets in the one above, did not finish after result.json."""
    for lock in (path / LOCK, path.parent / LOCK):
        holder, several = "", (path.parent / ACROSS_FILE).is_file()
        with suppress(OSError):
            if lock.parent == path or (several and lock.stat().st_mtime > file.stat().st_mtime):
                holder = lock.read_text("utf-8", "replace").strip()
        if holder.startswith(HELD_BY):
            raise InputError(
                f"{path} has an earlier result: the last bench ({holder}) is running, or was stopped before the end. "
                f"Run the bench again; it continues where it stopped. Or remove {lock} to read the earlier result."
            )


def version_of(record: Mapping[str, Any]) -> tuple[int, ...]:
    """The version of Steelyard that wrote a result or a line of a history, as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", str(record.get("steelyard")))[:3])


def read_qrels(path: Path, settings: Mapping[str, Any]) -> Qrels:
    """The qrels of a result folder, with the ranges of chunks, and what its settings record of them."""
    file = path / "qrels.parquet"
    if not file.is_file():
        raise InputError(f"{path} has no qrels.parquet: the folder is incomplete. Run the bench again.")
    qrels = Qrels.read(file, format="parquet")
    qrels.relevant_from = settings.get("relevant_from")
    qrels.labelled_by, qrels.from_judgments = settings.get("labelled_by", ""), settings.get("from_judgments", False)
    ranges = read_frame(path / RANGES)
    qrels.ranges = None if ranges is None else Ranges.of_frame(ranges)
    return qrels


def rules_frame(rules: Mapping[str, pl.DataFrame]) -> pl.DataFrame | None:
    """The qrels or scores by each overlap rule in one frame: their columns, and overlap; None without rules."""
    frames = [frame.with_columns(overlap=pl.lit(rule)) for rule, frame in rules.items()]
    return pl.concat(frames) if frames else None


def read_by_rule(file: Path) -> dict[str, pl.DataFrame]:
    """The frames of a file of `rules_frame`; none if the folder does not have the file."""
    frame = read_frame(file)
    if frame is None or "overlap" not in frame.columns:
        return {}
    parts = frame.partition_by("overlap", maintain_order=True, include_key=False, as_dict=True)
    return {str(rule): part for (rule,), part in parts.items()}


def _read_runs(path: Path, record: Mapping[str, Any]) -> dict[str, Run]:
    files = {row["run"]: path / "runs" / row["file"] for row in record["runs"]}
    missing = [str(file.relative_to(path)) for file in files.values() if not os.path.isfile(file)]
    if missing:
        raise InputError(
            problem_report(
                f"{path} is incomplete: {len(missing):,} of its {counted(len(files), 'run')} "
                f"{worded(len(missing), 'is', 'are')} missing:",
                missing,
                "Run the bench again; it continues where it stopped.",
            )
        )
    return {name: Run.read(file, format="parquet", name=name) for name, file in files.items()}


def read_queries(path: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The texts of the queries of a result folder and their other columns; none if they cannot be read."""
    return queries_of(read_frame(path / "queries.parquet"))


def queries_of(frame: pl.DataFrame | None) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The texts of the queries and their other columns, of the content of queries.parquet; none without it."""
    if frame is None:
        return {}, {}
    others = [name for name in frame.columns if name not in ("query_id", "text")]
    columns = {name: dict(frame.select("query_id", name).drop_nulls(name).iter_rows()) for name in others}
    return dict(frame.select("query_id", "text").iter_rows()), columns


def documents_of(frame: pl.DataFrame | None) -> dict[str, tuple[str, str]]:
    """Title and text of each document, of the content of documents.parquet; none without it."""
    rows = () if frame is None else frame.select("doc_id", "title", "text").iter_rows()
    return {doc: (title or "", text or "") for doc, title, text in rows}


def read_frame(file: Path) -> pl.DataFrame | None:
    """A Parquet file of the folder; None if it does not exist or cannot be read."""
    try:
        return read_parquet(read_bytes(file), file)
    except (OSError, InputError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None


def _compare_again(
    record: Mapping[str, Any],
    qrels: Qrels,
    rules: Mapping[str, Qrels],
    runs: Mapping[str, Run],
    columns: Mapping[str, Mapping[str, Any]],
    notes: list[Note],
) -> Comparison:
    """The comparison by the recorded settings."""
    settings = dict(record["settings"])
    by = settings.get("by")
    if by is not None and by != COMPLEXITY and by not in columns:
        notes.append(note("result-slices-missing", column=by))
        settings["by"] = None
    chunkers: list[str] = settings.get("chunkers") or []
    own = {label: chunking_qrels(qrels, label) for label in chunkers} if chunkers else qrels
    by_rule = {rule: {label: chunking_qrels(merged, label) for label in chunkers} for rule, merged in rules.items()}
    weights = record["comparison"].get("weights")
    try:
        return comparing.compare_runs(settings, weights, own, runs, record["runs"], columns, by_rule)
    except SteelyardError as error:
        raise InputError(f"the comparison of this folder cannot be computed again: {error}") from None


def _changed_means(record: Mapping[str, Any], comparison: Comparison) -> list[Note]:
    """A note on means that differ from the recorded ones."""
    recorded = {(row["run"], row["k"]): row for row in record["comparison"]["leaderboard"]}
    changed = []
    for row in comparison.leaderboard_rows:
        before = recorded.get((row.run, row.k), {})
        for key, mean in row.means.items():
            old = before.get(key)
            if not isnan(mean) and (old is None or abs(float(old) - mean) > 1e-9 * max(1.0, abs(mean))):
                changed.append(f"{key} of {row.run}")
    details = {"count": len(changed), "version": record["steelyard"], "examples": changed[:4]}
    return [note("result-means-differ", **details)] if changed else []


def _page_stages(folder: Path, record: Mapping[str, Any]) -> list[Stages]:
    """The stages of every run that has some, for the page; none if they cannot be read, or no measure can be split."""
    names, splits = comparing.staged_runs(record), []
    if names:
        frame, qrels = read_frame(folder / STAGES_FILE), read_qrels(folder, record["settings"])
        for name in names:
            with suppress(SteelyardError):
                splits.append(comparing.split_run(folder, record, frame, qrels, name, texts=lambda: _texts_in(folder)))
    return splits


# Files that are left over from an earlier result


def leftover_files(
    folder: Path,
    earlier: Mapping[str, Any],
    runs: Sequence[str],
    answers: Collection[str],
    inputs: Collection[Path] = (),
) -> list[Path]:
    """Runs of the earlier result that the new one does not have, and cached answers that neither of the two used.

    A retriever taken out and added again one bench later is still cached. `inputs`: files that the bench reads.
    """
    rows = [row for row in earlier.get("runs", []) if isinstance(row, dict)]
    kept = {name.lower() for name in run_files(runs)}
    names = [str(row.get("file")) for row in rows if str(row.get("file")).lower() not in kept]
    old_runs = [folder / "runs" / name for name in names if Path(name).name == name]
    used = {*answers, *(row.get("answers") for row in rows)}
    cached = sorted((folder / CACHE).glob("*.jsonl"))
    old_answers = [path for path in cached if path.name not in used and is_cache_file(path)]
    read = {path.resolve() for path in inputs}
    return [path for path in old_runs if path.is_file() and path.resolve() not in read] + old_answers


def check_own_folder(folder: Path, inputs: Collection[Path], several: Collection[str] = ()) -> None:
    """Raise if a bench would replace files that are not of a bench, or that it reads; `several`: names of datasets."""
    names = ["queries.parquet", DOCUMENTS, STAGES_FILE, "leaderboard.md", "result.json", *EVALUATION_FILES]
    names = [ACROSS_FILE, "across.md", "report.html"] if several else names
    there = [folder / name for name in names if (folder / name).exists()]
    there += [] if several else (folder / "runs").glob("*.parquet")
    own = [folder / LOCK, *(folder / name / "result.json" for name in several)]
    if there and not any(map(Path.exists, own)) and not any(map(is_cache_file, (folder / CACHE).glob("*.jsonl"))):
        try:
            read_record(folder, earlier=True)
        except InputError:
            problem = "is not of a bench, and a bench would replace it; name another folder (-o, output=)."
            raise InputError(problem, there[0]) from None
    read = {path.resolve() for path in inputs}
    if (replaced := next((path for path in there if path.resolve() in read), None)) is not None:
        raise InputError("is read by this bench, and would be replaced; copy it, or name another folder.", replaced)


def remove_files(paths: Collection[Path]) -> list[Path]:
    """Remove files; those that were removed. A file that cannot be removed is left."""
    removed = []
    for path in paths:
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed


def run_files(names: Sequence[str]) -> list[str]:
    """A distinct file name for every run.

    >>> run_files(["a/b", "a_b", "bm25 k1=1.2/b"])
    ['a_b.parquet', 'a_b-2.parquet', 'bm25_k1=1.2_b.parquet']
    """
    files: list[str] = []
    for name in names:
        stem, number = "".join(c if c.isalnum() or c in "-_.=+" else "_" for c in name), 1
        file = f"{stem}.parquet"
        while file.lower() in {taken.lower() for taken in files}:
            number += 1
            file = f"{stem}-{number}.parquet"
        files.append(file)
    return files


# What is read from result.json has these types, whoever wrote it. No other value is checked: versions differ in them.


def _file_name(name: str) -> str:
    if name in ("", ".", "..") or Path(name).name != name or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file in the folder")
    return name


class _Section(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Settings(_Section):
    measures: list[str]
    depth: int
    dialect: str | None = None
    at: list[int] | None = None
    by: str | None = None
    rel: float | None = None
    relevant_from: float | None = None
    labelled_by: str = ""
    from_judgments: bool = False
    chunkers: list[str] = []
    gate: list[str] = []
    allow_failed: int = 0


class _Dataset(_Section):
    name: str
    fingerprint: str
    documents: int


class _Run(_Section):
    run: str
    file: Annotated[str, AfterValidator(_file_name)]
    fingerprint: str
    settings: dict[str, Any]
    queries: int
    errors: dict[str, str]
    unknown_documents: int = 0
    cached: bool = False
    chunker: str | None = None
    session: str | None = None
    mean_seconds: float | None = None
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    queries_per_second: float | None = None
    index_seconds: float | None = None
    index_bytes: int | None = None
    peak_bytes: int | None = None
    stages: dict[str, list[str]] = {}


class _Place(_Section):
    run: str
    k: int | None = None


class _Comparison(_Section):
    leaderboard: list[_Place]
    weights: dict[str, float] | None = None
    not_measured: dict[str, str] = {}
    coverage: dict[str, dict[str, int]] = {}


class _Approximation(_Section):
    run: str
    exact: str
    k: int
    neighbours: float | None  # None if the exact search found nothing.
    measure: str
    lost: float
    low: float
    high: float
    p_adjusted: float
    seconds: float | None
    exact_seconds: float | None


class _Effect(_Section):
    measure: str
    runs: dict[str, dict[str, float | None]]
    largest: float


class _Finding(_Section):
    model_config = ConfigDict(extra="forbid", strict=True)

    code: str
    severity: str
    count: int
    text: str
    examples: list[str]
    effect: _Effect | None


class _Check(_Section):
    dataset: str
    findings: list[_Finding]
    ceilings: dict[str, float]
    smallest_difference: dict[str, float]


class _Record(_Section):
    steelyard: str = Field(pattern=r"^\d{1,4}(\.\d{1,4}){0,2}")
    settings: _Settings
    dataset: _Dataset
    machine: dict[str, str]
    runs: list[_Run]
    comparison: _Comparison | None
    chunk_notes: list[dict[str, Any] | str] = []
    approximation: list[_Approximation] = []
    check: _Check | None = None
