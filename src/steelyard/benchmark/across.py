"""across(): the results of several datasets in, an Across out; and the result of a bench over several datasets.

Results may be of a bench, in a folder, or published.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard.benchmark.cache import ReturnedTexts
from steelyard.benchmark.comparison import StageRow
from steelyard.benchmark.config import Bench
from steelyard.benchmark.folder import ACROSS_FILE, ResultFolder, load_result
from steelyard.benchmark.result import BenchResult
from steelyard.comparison.across import Across, DatasetValues, Missing, dataset_values, measured_column
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import Column, column_named, label
from steelyard.datasets import Dataset
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.io.files import write_file
from steelyard.io.mteb import read_results
from steelyard.io.published import Published, read_result_table
from steelyard.measures.grammar import Measure
from steelyard.notes import Note, note
from steelyard.safe_text import utf8
from steelyard.statistics.datasets import BordaRule
from steelyard.wording import SHOWN_NAMES, listed

MAIN_SCORE = "main_score"  # MTEB's name of the score that ranks models on a task.


def across(
    results: Mapping[str, Any] | Iterable[Any],
    measure: str | Measure | None = None,
    *,
    missing: Missing = "refuse",
    borda: BordaRule | None = None,
    dialect: str | Dialect = "steelyard",
    published: Iterable[str | Path] = (),
    alpha: float = 0.05,
    seed: int = 0,
) -> Across:
    """Runs over several datasets in one table: means, ranks, and tests that state their question.

    results: a mapping of dataset to its result (a BenchResult, a Comparison, or a result folder), or a list of
    results and folders, whose datasets then have their own names, or of (dataset, result). The folder of a bench over
    several datasets stands for all of them. Query ids of different datasets are never mixed.
    measure: the measure to compare by, as in `nDCG@10`; default: the first of the results.
    missing: a run without a value on a dataset has no mean (`refuse`), or one over the datasets that it has (`skip`).
    borda: the rule of the Borda count, `complete`, `all` or `measured`; default: that of the dialect. The rules differ
    for runs without a value on every dataset.
    dialect: whose Borda rule, and whose metric names in published results; `mteb` for MTEB's.
    published: files of published means: MTEB results (a file or a folder), or a table of runs and datasets.
    """
    chosen = dialect_of(dialect)
    sources, tables = _sources(results)
    published_rows, notes = _published([*tables, *map(Path, published)])
    datasets: list[DatasetValues] = []
    column: Column | None = None
    name = measure = None if measure is None else str(measure)
    first = next(((dataset, comparison) for dataset, (comparison, _) in sources.items()), None)
    for dataset, (comparison, page) in sources.items():
        table, dataset_column = measured_column(comparison, measure)
        if column is not None and first is not None:
            _check_same(first, column, dataset, dataset_column, comparison)
        column, name = dataset_column, label(dataset_column.key, table.k)
        datasets.append(dataset_values(dataset, comparison, table, dataset_column, page))
    if name is None:
        name = MAIN_SCORE if any(MAIN_SCORE in row.scores for row in published_rows) else "score"
    datasets, more = _with_published(datasets, published_rows, name, column, chosen)
    column = column or column_named(name)
    return Across(tuple(datasets), name, column.better, missing, borda or chosen.borda[0], alpha, seed, (*notes, *more))


def _sources(results: Any) -> tuple[dict[str, tuple[Comparison, Path | None]], list[Path]]:
    """The comparison of every dataset with its page, and the files of published results."""
    sources: dict[str, tuple[Comparison, Path | None]] = {}
    published: list[Path] = []
    if isinstance(results, (str, Path, Comparison, BenchResult, ResultFolder)):
        results = [results]
    if isinstance(results, Mapping):
        results = [(str(name), result) for name, result in results.items()]
    for name, result in (source if isinstance(source, tuple) else (None, source) for source in results):
        if isinstance(result, (str, Path)):
            path = Path(result)
            if not path.exists():
                raise InputError(
                    f"{path} does not exist; expected a result folder of `steelyard bench`, or published results."
                )
            if path.name != "result.json" and not any((path / file).is_file() for file in ("result.json", ACROSS_FILE)):
                if name is not None:
                    raise InputError(
                        f"{result} is not a result folder, so it is not the result of one dataset ({name!r}). Files of "
                        "published results, which name their datasets, belong in `published`."
                    )
                published.append(path)
                continue
        for dataset, comparison, page in _results_of(name, result):
            if dataset in sources:
                raise InputError(
                    f"two results are of the dataset {dataset!r}. Runs of one dataset belong in one result; if these "
                    f"are two datasets, name them: across({{'name': result}}), or `steelyard across NAME=FOLDER`."
                )
            sources[dataset] = comparison, page
    return sources, published


def _results_of(name: str | None, result: Any) -> list[tuple[str, Comparison, Path | None]]:
    if isinstance(result, (str, Path)):
        path, file = Path(result), Path(result) / ACROSS_FILE
        if file.is_file():
            if name is not None:
                raise InputError(
                    f"{path} has the results of several datasets; give it without a name, or the folder of {name!r} "
                    "in it."
                )
            try:
                datasets = [str(name) for name in json.loads(file.read_text("utf-8"))["datasets"]]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file} cannot be read ({error}); run the bench again to write it.") from None
            return [named_result for dataset in datasets for named_result in _results_of(dataset, path / dataset)]
        result = load_result(path)
    if isinstance(result, ResultFolder):
        return [(name or str(result.record["dataset"]["name"]), result.comparison, result.path / "report.html")]
    if isinstance(result, BenchResult):
        return [(name or result.dataset.name, result.comparison, result.folder / "report.html")]
    if isinstance(result, Comparison):
        if name is None:
            raise InputError("a Comparison does not know its dataset; give a mapping: across({'name': comparison}).")
        return [(name, result, None)]
    raise InputError(
        f"expected a BenchResult, a Comparison or a result folder for {name or 'a dataset'}, got "
        f"{type(result).__name__}."
    )


def _check_same(
    first: tuple[str, Comparison], column: Column, dataset: str, dataset_column: Column, comparison: Comparison
) -> None:
    """Raise where two datasets were measured by different definitions."""
    spelled = [None if c.measure is None else c.measure.spelled for c in (column, dataset_column)]
    settings = [first[1].settings, comparison.settings]
    weights = [first[1].weights, comparison.weights] if column.measure is None else [None, None]
    for what, one, other in (("the measure", *spelled), ("the settings", *settings), ("the weights", *weights)):
        if one != other:
            raise InputError(
                f"{what} of {first[0]!r} and {dataset!r} differ ({one or 'the defaults'} and {other or 'the defaults'}"
                "), so their values cannot be averaged. Run both benches with the same settings."
            )


# A bench over several datasets


@dataclass(frozen=True, eq=False)
class BenchAcross(BenchResult):
    """The result of a bench over several datasets: the result of each in `results`, and `across` all of them.

    What a BenchResult has for its one dataset is in the result of each dataset: `comparison` is an error, `runs` empty.
    """

    results: Mapping[str, BenchResult] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Bench, results: Mapping[str, BenchResult], folder: Path) -> BenchAcross:
        """The results of every dataset as one."""
        return cls(config, Dataset.of({}, {}, {}, ", ".join(results)), {}, (), None, folder, results=results)

    @cached_property
    def across(self) -> Across:
        """The runs over all datasets, by the first measure of the bench."""
        return across(self.results, seed=self.bench.seed)

    @property
    def comparison(self) -> Comparison:
        """An error: there is one comparison per dataset."""
        raise InputError(
            f"a bench over several datasets has one comparison per dataset: `.results[{next(iter(self.results))!r}]"
            ".comparison`; `.across` has all of them in one table."
        )

    @property
    def broken(self) -> list[str]:
        """The retrievers that failed on every query of a dataset."""
        return list(dict.fromkeys(run for result in self.results.values() for run in result.broken))

    def write(
        self, leftovers: Collection[Path] = (), texts: ReturnedTexts | None = None, stages: Iterable[StageRow] = ()
    ) -> list[Path]:
        """Write across.json, across.md and the page; every dataset has written its own folder and removed leftovers."""
        write_file(self.folder / "across.md", utf8(self.across.to_markdown() + "\n"))
        self.across.to_html(self.folder / "report.html")
        write_file(self.folder / ACROSS_FILE, utf8(self.across.to_json() + "\n"))
        return []

    def to_markdown(self) -> str:
        """The table over all datasets in Markdown."""
        return self.across.to_markdown()

    def to_dict(self) -> dict[str, Any]:
        """As in across.json."""
        return self.across.to_dict()

    def to_html(
        self, path: str | Path | None = None, *, everything: bool = False, charts: str | Path | None = None
    ) -> str:
        """The table over all datasets as HTML; with a path, its page is written there."""
        if everything or charts is not None:
            raise InputError("the page over several datasets has no lists and no charts; those of each dataset do.")
        return self.across.to_html(path)

    def __repr__(self) -> str:
        return f"{self.across!r}\nThe result is in {self.folder}."

    def _repr_html_(self) -> str:
        return self.across._repr_html_()


# Published results


def _published(paths: Sequence[Path]) -> tuple[list[Published], list[Note]]:
    rows: list[Published] = []
    notes: list[Note] = []
    for path in paths:
        of_mteb = path.is_dir() or path.suffix == ".json"
        values, table_notes = (read_results(path), []) if of_mteb else read_result_table(path)
        rows += values
        notes += table_notes
    averaged = list(dict.fromkeys(row.dataset for row in rows if row.parts > 1))
    if averaged:
        notes.append(note("across-splits", tasks=averaged))
    return rows, notes


def _folded(name: str) -> str:
    """A name of a dataset without case and punctuation: SciFact and scifact are the same."""
    return "".join(sign for sign in name.casefold() if sign.isalnum()) or name


def _with_published(
    datasets: Sequence[DatasetValues], rows: Sequence[Published], measure: str, column: Column | None, dialect: Dialect
) -> tuple[list[DatasetValues], list[Note]]:
    """The datasets with published means; where there are results, only of their datasets."""
    by_name = {_folded(dataset.name): dataset for dataset in datasets}
    means: dict[str, dict[str, float]] = {}
    titles: dict[str, str] = {}
    for row in rows:
        titles.setdefault(_folded(row.dataset), row.dataset)
        values = means.setdefault(_folded(row.dataset), {})
        if row.run in values:
            raise InputError(f"{row.run!r} has two published values on {row.dataset!r}; keep one of them.", row.source)
        values[row.run] = _score(row, measure, column, dialect)
    if not datasets:
        return [DatasetValues(titles[key], values) for key, values in means.items()], []
    runs = sorted({run for key in by_name for run in means.get(key, {})})
    unused = [titles[key] for key in means if key not in by_name]
    notes = [note("across-published", runs=runs)] if runs else []
    notes += [note("across-unused-datasets", names=unused)] if unused else []
    with_both = []
    for dataset in datasets:
        more = means.get(_folded(dataset.name), {})
        if twice := sorted(dataset.means.keys() & more.keys()):
            problem = f"{dataset.name}: {listed(twice, SHOWN_NAMES)} has a value of its own and a published one;"
            raise InputError(f"{problem} give one of them another name.")
        with_both.append(replace(dataset, means={**dataset.means, **more}))
    return with_both, notes


def _score(row: Published, measure: str, column: Column | None, dialect: Dialect) -> float:
    """The value of the measure in published scores, by its name or by its definition in MTEB's names."""
    if "" in row.scores:
        return row.scores[""]
    if measure in row.scores:
        return row.scores[measure]
    wanted = {measure, _spelled(dialect_of("steelyard"), measure)}
    if column is not None and column.measure is not None:
        wanted.add(column.measure.spelled)
    names = dialect_of("mteb") if dialect.name == "steelyard" else dialect
    for name, value in row.scores.items():
        if _spelled(names, name) in wanted:
            return value
    shown = [name for name in row.scores if not name.startswith("nauc_")]
    raise MeasureError(
        f"{row.source} has no value of {measure}; it has {listed(shown, SHOWN_NAMES)}.{did_you_mean(measure, shown)}"
    )


def _spelled(dialect: Dialect, name: str) -> str:
    try:
        return dialect.measure(name).spelled
    except MeasureError:
        return name
