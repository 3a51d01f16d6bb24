"""What an earlier bench wrote into a result folder, and the new result no longer needs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.bench.chunkers import compare_chunkings, own_judgments, with_notes
from steelyard.comparison.compare import compare
from steelyard.comparison.result import Comparison
from steelyard.comparison.slices import COMPLEXITY
from steelyard.comparison.testing import ComparisonPlan
from steelyard.dialects import dialect
from steelyard.errors import InputError, SteelyardError, problem_report
from steelyard.options import POLICIES
from steelyard.qrels import Qrels
from steelyard.report.page.subject import Subject
from steelyard.run import Run
from steelyard.version import __version__
from steelyard.wording import counted, worded

if TYPE_CHECKING:
    import polars as pl


_ANSWERS = re.compile(r"[0-9a-f]{20}\.jsonl")


def earlier_record(folder: Path) -> Mapping[str, Any]:
    """The record of the result that is there; empty where there is none that can be read."""
    try:
        record = json.loads((folder / "result.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def leftovers(
    folder: Path, cache: Path, earlier: Mapping[str, Any], runs: Collection[str], answers: Collection[str]
) -> list[Path]:
    """Files that a bench wrote and that neither the new result nor the next bench will read.

    Runs that the earlier result names and the new one does not. Answers that neither of the two
    used: a retriever that is taken out and put back again is not asked anew.
    """
    named = [row for row in earlier.get("runs", []) if isinstance(row, dict)]
    kept = {name.lower() for name in runs}
    gone = [str(row.get("file")) for row in named if str(row.get("file")).lower() not in kept]
    used = {*answers, *(row.get("answers") for row in named)}
    old = [path for path in sorted(cache.glob("*.jsonl")) if path.name not in used and _is_ours(path)]
    return [
        folder / "runs" / name
        for name in gone
        if Path(name).name == name and (folder / "runs" / name).is_file()
    ] + old


def removed(paths: Collection[Path]) -> list[Path]:
    """Remove the files; those that are gone. One that cannot be removed stays, and does no harm."""
    gone = []
    for path in paths:
        try:
            path.unlink()
        except OSError:
            continue
        gone.append(path)
    return gone


def _is_ours(path: Path) -> bool:
    """Whether a file is a bench's answers: by its name and by what its first line holds."""
    if not _ANSWERS.fullmatch(path.name) or not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(next(lines, ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and bool({"cost", "query"} & set(first))


_TESTED = ("baseline", "test", "correction", "seed")
_MEASURED = ("at", "dialect", *POLICIES)


def compared(
    settings: Mapping[str, Any],
    composite: Any,
    judgments: Qrels | Mapping[str, Qrels],
    runs: Mapping[str, Run],
    chunking_of: Mapping[str, str],
    columns: Mapping[str, Mapping[str, Any]],
) -> Comparison:
    """The runs compared as the settings say, by their names in bench.yaml; what is None or absent has its default.

    `judgments` are those of every chunking, by its label, where `chunking_of` names each run's. `columns`
    are the queries' own. A run whose documents are called otherwise than those of the corpus is no error here:
    it must not cost the others their result.
    """
    chosen = {name: value for name, value in settings.items() if value is not None}
    tested = {name: chosen[name] for name in _TESTED if name in chosen}
    by = chosen.get("by")
    options: dict[str, Any] = {
        "composite": composite,
        "by": by,
        "queries": columns if by in columns else None,
        "unmatched": "note",
        **{name: chosen[name] for name in _MEASURED if name in chosen},
    }
    measures = chosen.get("measures") or None
    if isinstance(judgments, Mapping):
        return compare_chunkings(judgments, runs, chunking_of, measures, ComparisonPlan(**tested), **options)
    return compare(judgments, runs, measures, **tested, **options)


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """What a bench wrote: its record (result.json), the comparison made again, and the texts.

    `absent` says what is not there: a folder may be without texts and still be worth looking at.
    """

    path: Path
    record: Mapping[str, Any]
    runs: Mapping[str, Run]
    qrels: Qrels
    comparison: Comparison
    queries: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    documents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    def subject(self) -> Subject:
        """What a page of this folder is about."""
        return subject_of(
            self.path,
            self.record,
            self.comparison,
            self.queries,
            self.columns,
            self.documents,
            self.absent,
        )

    def to_html(
        self, path: str | Path, *, everything: bool = False, charts: str | Path | None = None
    ) -> None:
        """Write the report page; with `charts`, also every chart as PNG and SVG in that folder."""
        from steelyard.report.page import write_page

        write_page(self.subject(), path, everything=everything, charts=charts)

    def __repr__(self) -> str:
        return f"{self.comparison!r}\nRead from {self.path}."

    def _repr_html_(self) -> str:
        return self.comparison.to_html()


def load_result(source: str | Path) -> ResultFolder:
    """Read a result folder, and make its comparison again from the runs and the judgments in it.

    A folder that a stopped bench left half written, or that a newer version wrote, is refused with
    what to do about it; one without texts is read, and `absent` says what it lacks.
    """
    path = Path(source)
    path = path.parent if path.name == "result.json" else path
    record = read_record(path)
    qrels = read_judgments(path)
    runs = _runs(path, record)
    absent: list[str] = []
    queries, columns = read_queries(path, absent)
    documents = _documents(path, absent)
    texts = {doc: f"{title}\n{text}" if title else text for doc, (title, text) in documents.items()}
    runs = {
        name: Run(run, texts=texts) if texts and _needs_texts(record) else run for name, run in runs.items()
    }
    comparison = with_notes(_compared(record, qrels, runs, columns, absent), record.get("chunk_notes", ()))
    comparison = replace(comparison, failed=_failed(record))
    absent += _changed(record, comparison)
    return ResultFolder(path, record, runs, qrels, comparison, queries, columns, documents, tuple(absent))


def subject_of(
    folder: Path,
    record: Mapping[str, Any],
    comparison: Comparison,
    queries: Mapping[str, str],
    columns: Mapping[str, Mapping[str, Any]],
    documents: Mapping[str, tuple[str, str]],
    absent: tuple[str, ...] = (),
) -> Subject:
    """What the page of a bench is about, from its record and the texts."""
    dataset, machine = record["dataset"], record["machine"]
    rows = record["runs"]
    facts = [
        ("Dataset", f"{dataset['name']}, {counted(dataset['documents'], 'document')}"),
        ("Fingerprint of the dataset", str(dataset["fingerprint"])),
        ("Depth", f"{counted(record['settings']['depth'], 'document')} asked of every retriever"),
        (
            "Test",
            f"{comparison.plan.test}, correction {comparison.plan.correction}, seed {comparison.plan.seed}",
        ),
        ("Machine", ", ".join(str(part) for part in machine.values())),
        ("Measured by", f"Steelyard {record['steelyard']}"),
    ]
    return Subject(
        comparison=comparison,
        title=str(dataset["name"]),
        queries=queries,
        columns=columns,
        documents=documents,
        costs=rows,
        errors={row["run"]: row["errors"] for row in rows if row["errors"]},
        made={str(row["run"]): (_said(row["settings"]), str(row["fingerprint"])) for row in rows},
        facts=facts,
        command=f"steelyard report {_quoted(folder)} -o report.html",
        absent=absent,
    )


def _said(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _quoted(folder: Path) -> str:
    import shlex

    return shlex.quote(str(folder))


def read_record(path: Path) -> dict[str, Any]:
    """result.json, checked: it is written last, so where it is missing the bench did not finish."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise InputError(
            f"{path} {what}; expected a result folder, as `steelyard bench bench.yaml -o {path}` writes one."
        )
    file = path / "result.json"
    if not file.is_file():
        raise InputError(
            f"{path} has no result.json: it is not a result folder, or the bench that writes it was stopped before the end. "
            "Run the bench again; it goes on where it was."
        )
    try:
        record = json.loads(file.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"{file} cannot be read ({error}); run the bench again to write it anew.") from None
    lacking = {"steelyard", "settings", "dataset", "machine", "runs", "comparison"} - set(
        record if isinstance(record, dict) else ()
    )
    if lacking:
        raise InputError(
            f"{file} is not a bench's record: it has no {', '.join(sorted(lacking))}. Run the bench again to write it anew."
        )
    if _version(str(record["steelyard"])) > _version(__version__):
        raise InputError(
            f"{path} was written by Steelyard {record['steelyard']}, which is newer than this one ({__version__}). "
            "Install that version or a later one to read it: pip install --upgrade steelyard."
        )
    return dict(record)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def read_judgments(path: Path) -> Qrels:
    """The judgments that the runs of a folder were measured against."""
    file = path / "qrels.parquet"
    if not file.is_file():
        raise InputError(f"{path} has no qrels.parquet; the folder is half written. Run the bench again.")
    return Qrels.read(file, format="parquet")


def _runs(path: Path, record: Mapping[str, Any]) -> dict[str, Run]:
    files = {str(row["run"]): path / "runs" / str(row["file"]) for row in record["runs"]}
    lacking = [str(file.relative_to(path)) for file in files.values() if not file.is_file()]
    if lacking:
        raise InputError(
            problem_report(
                f"{path} is half written: {len(lacking):,} of its {counted(len(files), 'run')} "
                f"{worded(len(lacking), 'is', 'are')} not there:",
                lacking,
                "Run the bench again; it goes on where it was.",
            )
        )
    return {name: Run.read(file, format="parquet", name=name) for name, file in files.items()}


def read_queries(path: Path, absent: list[str]) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The queries' texts and their other columns; what is not there goes into `absent`."""
    frame = read_frame(path / "queries.parquet")
    if frame is None:
        absent.append("The folder has no readable queries.parquet: queries are shown by their ids.")
        return {}, {}
    ids = frame["query_id"].to_list()
    known = [name for name in frame.columns if name not in ("query_id", "text")]
    columns = {
        name: {
            query: value for query, value in zip(ids, frame[name].to_list(), strict=True) if value is not None
        }
        for name in known
    }
    return dict(zip(ids, frame["text"].to_list(), strict=True)), columns


def _documents(path: Path, absent: list[str]) -> dict[str, tuple[str, str]]:
    frame = read_frame(path / "documents.parquet")
    if frame is None:
        absent.append("The folder has no readable documents.parquet: documents are shown by their ids.")
        return {}
    rows = frame.select("doc_id", "title", "text").iter_rows()
    return {doc: (title or "", text or "") for doc, title, text in rows}


def read_frame(file: Path) -> pl.DataFrame | None:
    """A Parquet file of the folder; None where it is not there or cannot be read."""
    import polars as pl

    try:
        return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError):
        return None


def _needs_texts(record: Mapping[str, Any]) -> bool:
    settings = record["settings"]
    return dialect(settings.get("dialect") or "steelyard").reads_texts(settings["measures"])


def _compared(
    record: Mapping[str, Any],
    qrels: Qrels,
    runs: Mapping[str, Run],
    columns: Mapping[str, Mapping[str, Any]],
    absent: list[str],
) -> Comparison:
    """The comparison as the bench made it, from the settings it recorded."""
    settings = dict(record["settings"])
    by = settings.get("by")
    if by is not None and by != COMPLEXITY and by not in columns:
        absent.append(f"The queries' column {by!r} is not in the folder: there are no slices by it.")
        settings["by"] = None
    chunkers = settings.get("chunkers")
    judgments = {label: own_judgments(qrels, label) for label in chunkers} if chunkers else qrels
    chunking_of = {str(row["run"]): str(row.get("chunker")) for row in record["runs"]}
    try:
        return compared(settings, record["comparison"].get("weights"), judgments, runs, chunking_of, columns)
    except SteelyardError as error:
        raise InputError(f"the comparison of this folder cannot be made again: {error}") from None


def _failed(record: Mapping[str, Any]) -> dict[str, str]:
    """On how many of its queries each run failed that failed on any."""
    return {
        str(row["run"]): failed_of(len(row["errors"]), row["queries"])
        for row in record["runs"]
        if row["errors"]
    }


def failed_of(failed: int, answered: int) -> str:
    """On how many of all queries a run failed.

    >>> failed_of(2, 4)
    '2 of 6'
    """
    return f"{failed:,} of {failed + answered:,}"


def _changed(record: Mapping[str, Any], comparison: Comparison) -> list[str]:
    """Where the numbers made again are not those recorded: which, so that nobody is misled."""
    kept = {(row["run"], row["k"]): row for row in record["comparison"]["leaderboard"]}
    differ = []
    for row in comparison.leaderboard_rows:
        before = kept.get((row.run, row.k), {})
        for key, mean in row.means.items():
            old = before.get(key)
            if mean == mean and (old is None or abs(float(old) - mean) > 1e-9 * max(1.0, abs(mean))):
                differ.append(f"{key} of {row.run}")
    if not differ:
        return []
    shown = ", ".join(differ[:3]) + (", ..." if len(differ) > 3 else "")
    return [
        f"{counted(len(differ), 'mean differs', 'means differ')} from what Steelyard {record['steelyard']} recorded ({shown}): "
        "the folder was changed, or this version measures differently."
    ]
