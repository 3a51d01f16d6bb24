"""How much memory a piece of work took at its peak, where the system can tell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from steelyard.bench.cache import Answers, AnswerStore, key_of
from steelyard.bench.chunkers import Chunking, chunk_notes, chunkings_of, joined, with_notes
from steelyard.bench.config import Bench, check_bench, read_bench
from steelyard.bench.folder import compared, earlier_record, leftovers, removed
from steelyard.bench.result import BenchResult, Row, run_files
from steelyard.bench.specs import Spec
from steelyard.datasets import Dataset, validate_dataset
from steelyard.datasets.reading import dataset_named
from steelyard.dialects import dialect
from steelyard.errors import InputError, SteelyardError
from steelyard.retrievers.adapters.targets import list_hint
from steelyard.retrievers.base import Retriever
from steelyard.run import Run

_STATM = Path("/proc/self/statm")
_PAGE = 4096
_EVERY = 0.01


class PeakMemory:
    """Samples the process's resident memory while it is open; `bytes` is the most above the start."""

    def __init__(self) -> None:
        self.bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        self._stop = threading.Event()
        self._start = _resident()
        self._peak = self._start
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        now = _resident()
        if self._start is not None and self._peak is not None and now is not None:
            self.bytes = max(self._peak, now) - self._start

    def _sample(self) -> None:
        while self._start is not None and not self._stop.wait(_EVERY):
            self._peak = max(self._peak or 0, _resident() or 0)


def _resident() -> int | None:
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


Watch = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass
class Contestant:
    """A retriever that takes part: its answers so far, and where they are kept."""

    spec: Spec
    retriever: Retriever
    corpus: Mapping[str, str]
    answers: Answers
    store: AnswerStore
    broken: str | None = None

    def waiting(self, queries: Sequence[str]) -> list[str]:
        """The queries it has not been asked."""
        return [query for query in queries if not self.answers.done(query)]


def index_all(contestants: Sequence[Contestant], watch: Watch) -> None:
    """Index every retriever, one after the other; note time, size and peak memory."""
    for number, contestant in enumerate(contestants):
        watch(f"indexing {contestant.spec.label}", number, len(contestants))
        with PeakMemory() as memory:
            start = perf_counter()
            contestant.broken = _indexed(contestant)
            taken = perf_counter() - start
        if contestant.broken is not None:
            continue
        cost = {
            "index_seconds": taken,
            "index_bytes": contestant.retriever.size_in_bytes(),
            "peak_bytes": memory.bytes,
        }
        contestant.answers.cost.update(cost)
        contestant.store.add({"cost": cost})


def ask_all(
    contestants: Sequence[Contestant], queries: Mapping[str, str], depth: int, warmup: int, watch: Watch
) -> None:
    """Ask every waiting query of every retriever in turn; who goes first changes with every query."""
    texts = list(queries.values())
    for contestant in contestants:
        if contestant.broken is not None:
            contestant.answers.errors |= dict.fromkeys(contestant.waiting(list(queries)), contestant.broken)
    contestants = [contestant for contestant in contestants if contestant.broken is None]
    for contestant in contestants:
        watch(f"asking {contestant.spec.label}", 0, len(queries))
        for text in texts[:warmup]:
            _ask(contestant, text, depth)
    waiting = {id(contestant): set(contestant.waiting(list(queries))) for contestant in contestants}
    try:
        for number, (query, text) in enumerate(queries.items()):
            turn = number % len(contestants)
            for contestant in [*contestants[turn:], *contestants[:turn]]:
                if query in waiting[id(contestant)]:
                    watch(f"asking {contestant.spec.label}", number, len(queries))
                    _note(contestant, query, text, depth)
    finally:
        for contestant in contestants:
            _look_for_ids(contestant)
            contestant.store.close()


def throughput(
    contestants: Sequence[Contestant], queries: Mapping[str, str], depth: int, watch: Watch
) -> None:
    """Queries a second when all are asked at once; of a retriever that failed on some there is no saying."""
    for number, contestant in enumerate(c for c in contestants if not c.answers.errors):
        watch(f"asking {contestant.spec.label} all at once", number, len(contestants))
        start = perf_counter()
        try:
            contestant.retriever.retrieve(list(queries.values()), depth)
        except Exception:
            continue
        cost = {"queries_per_second": len(queries) / max(perf_counter() - start, 1e-9)}
        contestant.answers.cost.update(cost)
        contestant.store.add({"cost": cost})
        contestant.store.close()


def _note(contestant: Contestant, query: str, text: str, depth: int) -> None:
    start = perf_counter()
    answer, error = _ask(contestant, text, depth)
    taken = perf_counter() - start
    if error is not None:
        contestant.answers.errors[query] = error
        contestant.store.add({"query": query, "error": error})
        return
    contestant.answers.errors.pop(query, None)
    contestant.answers.lists[query] = answer
    contestant.answers.seconds[query] = taken
    contestant.store.add({"query": query, "seconds": taken, "list": answer})


def _look_for_ids(contestant: Contestant) -> None:
    """Where documents that came are not in the corpus, note by what other `id` they would be."""
    look = getattr(contestant.retriever, "ids_elsewhere", None)
    listed = contestant.answers.lists.values()
    if look is None or all(doc in contestant.corpus for answer in listed for doc, _ in answer):
        return
    contestant.answers.id_hint = look(contestant.corpus)
    contestant.store.add({"id_hint": contestant.answers.id_hint})


def _indexed(contestant: Contestant) -> str | None:
    """Index the corpus; what went wrong, if anything did."""
    try:
        contestant.retriever.index(contestant.corpus)
    except Exception as error:
        return f"indexing failed: {_told(error, contestant.spec)}"
    return None


def _ask(contestant: Contestant, text: str, depth: int) -> tuple[list[tuple[str, float | None]], str | None]:
    """One answer, or what went wrong: a retriever's failure is a result, not the end of the bench."""
    try:
        return list(contestant.retriever.retrieve([text], depth)[0]), None
    except Exception as error:
        return [], _told(error, contestant.spec)


def _told(error: Exception, spec: Spec) -> str:
    """What a retriever's error says; where a list among its `arguments` is the likely cause, that too."""
    said = str(error) if isinstance(error, SteelyardError) else f"{type(error).__name__}: {error}"
    hint = list_hint(error, spec.settings.get("arguments"))
    return f"{said.rstrip('.')}. {hint}" if hint else said


CACHE = "cache"
LOG = logging.getLogger("steelyard.bench")


def bench(
    source: str | Path | Bench | Mapping[str, Any],
    output: str | Path | None = None,
    *,
    fresh: bool = False,
    strict: bool = False,
    watch: Watch | None = None,
) -> BenchResult:
    """Run retrievers over a dataset, time them, measure, compare, and write a result folder.

    `source` is a bench.yaml, a Bench, or a mapping of its keys. `output` is the result folder; left out, it
    is `NAME-result` beside NAME.yaml, and `./bench-result` for a Bench or a mapping. What was asked before,
    with the same dataset, settings, code and version, is not asked again unless `fresh`. What an earlier
    bench left in the folder and this one no longer names is removed: it is logged (`steelyard.bench`), and
    in the result's `removed`. Errors of the answer key (those of `steelyard validate`) are logged and in the
    result's `problems`; with `strict` nothing is run where there are any. A retriever that fails on queries
    does not stop the others: see the result's `failed`. `watch(what, done, total)` is told of the progress.
    """
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is not None:
        made, specs = read_bench(path)
    else:
        assert not isinstance(source, (str, Path))
        made, specs = check_bench(source)
    folder = Path(output) if output is not None else _folder(path)
    beside = path.parent if path else Path()
    dataset = dataset_named(made.dataset, beside, judged=made.evidence is None)
    if not dataset.queries:
        raise InputError(f"dataset {dataset.name!r} has no queries; there is nothing to ask.")
    problems = key_problems(dataset, made)
    if problems and strict:
        raise InputError(
            "\n".join([f"dataset {dataset.name!r}: the answer key is broken; nothing was run:", *problems])
        )
    for problem in problems:
        LOG.warning("%s", problem)
    chunkings = chunkings_of(dataset, made.chunkers, made.evidence, made.overlap, beside)
    judged = set(chunkings[0].qrels.queries)
    asked = {query: text for query, text in dataset.queries.items() if query in judged}
    if not asked:
        raise _unjudged(dataset, chunkings[0])
    tell = watch or (lambda what, done, total: None)
    contestants: list[Contestant] = []
    waiting: list[Contestant] = []
    for chunking in chunkings:
        here = _contestants(specs, chunking, made.depth, folder / CACHE, fresh)
        contestants += here
        late = [c for c in here if c.waiting(list(asked))]
        index_all(late, tell)
        waiting += late
    cached = {c.spec.label for c in contestants} - {c.spec.label for c in waiting}
    if waiting:
        ask_all(waiting, asked, made.depth, made.warmup, tell)
        throughput(waiting, asked, made.depth, tell)
    tell("measuring", 0, 1)
    runs: dict[str, Run] = {}
    rows: list[Row] = []
    for chunking in chunkings:
        run_here, row_here = _gathered(specs, contestants, chunking, made, cached)
        runs |= run_here
        rows += row_here
    judgments = {str(chunking.label): chunking.qrels for chunking in chunkings}
    comparison = compared(
        dict(made),
        made.composite,
        judgments if made.chunkers else dataset.qrels,
        runs,
        {row.run: str(row.chunker) for row in rows},
        dataset.queries.columns,
    )
    said: tuple[str, ...] = ()
    if made.chunkers:
        said = chunk_notes(dataset, chunkings, comparison, {row.run: str(row.chunker) for row in rows}, runs)
    result = BenchResult(
        bench=made,
        dataset=joined(dataset, chunkings),
        runs=runs,
        rows=tuple(rows),
        comparison=replace(
            with_notes(comparison, said), failed={row.run: row.failed for row in rows if row.errors}
        ),
        folder=folder,
        problems=problems,
        chunk_notes=said,
    )
    tell("writing", 0, 1)
    earlier = earlier_record(folder)
    result.write()
    used = {row.answers for row in rows if row.answers is not None}
    old = leftovers(folder, folder / CACHE, earlier, run_files(list(runs)), used)
    result = replace(result, removed=tuple(removed(old)))
    if result.removed:
        LOG.warning("%s", result.removal)
    LOG.info("The result is in %s.", folder)
    return result


def _unjudged(dataset: Dataset, chunking: Chunking) -> InputError:
    """The error where the dataset's queries and the answer key's have none in common."""
    asked, judged = list(dataset.queries)[:3], chunking.qrels.queries[:3]
    return InputError(
        f"dataset {dataset.name!r}: no query is judged; there is nothing to measure. Its queries begin with "
        f"{', '.join(map(repr, asked))}, those of the answer key with {', '.join(map(repr, judged)) or 'none'}: "
        "call them alike."
    )


def _folder(path: Path | None) -> Path:
    return path.parent / f"{path.stem}-result" if path else Path("bench-result")


def _contestants(
    specs: Sequence[Spec], chunking: Chunking, depth: int, cache: Path, fresh: bool
) -> list[Contestant]:
    contestants = []
    for spec in map(chunking.spec, specs):
        if spec.retriever is None:
            continue
        store = AnswerStore(cache, key_of(chunking.fingerprint, spec.name, spec.settings, depth))
        if fresh:
            store.clear()
        contestants.append(Contestant(spec, spec.retriever, chunking.corpus, store.read(), store))
    return contestants


def _gathered(
    specs: Sequence[Spec],
    contestants: Sequence[Contestant],
    chunking: Chunking,
    made: Bench,
    cached: set[str],
) -> tuple[dict[str, Run], list[Row]]:
    """A Run and a row of costs for every retriever, in the order they were written."""
    by_label = {c.spec.label: c for c in contestants}
    texts = dict(chunking.corpus) if dialect(made.dialect).reads_texts(made.measures) else None
    known = set(chunking.corpus)
    runs: dict[str, Run] = {}
    rows: list[Row] = []
    for spec in map(chunking.spec, specs):
        if spec.run is not None:
            finished = Run.read(spec.run, name=spec.label, **spec.reading)
            runs[spec.label] = Run(finished, seconds=finished.seconds or {}, texts=texts)
            answers = Answers()
            returned = finished.table["doc_id"].to_list()
        else:
            answers = by_label[spec.label].answers
            runs[spec.label] = Run(_lists(answers), name=spec.label, seconds=answers.seconds, texts=texts)
            returned = [doc for listed in answers.lists.values() for doc, _ in listed]
        unknown = [doc for doc in returned if doc not in known]
        row = Row.of(spec.label, spec.name, spec.settings, answers, unknown, spec.label in cached)
        if spec.label in by_label:
            row = replace(row, answers=by_label[spec.label].store.path.name)
        if chunking.label is not None:
            size: dict[str, Any] = {"chunks": len(chunking.corpus), "chunk_tokens": chunking.mean_tokens}
            row = replace(row, chunker=chunking.label, **size)
        rows.append(row)
    return runs, rows


def key_problems(dataset: Dataset, made: Bench) -> tuple[str, ...]:
    """What `validate` calls errors, of the questions and of the answer key that the bench measures by."""
    unused = ("unknown-document", "unknown-query") if made.evidence is not None else ()
    found = validate_dataset(dataset, near_duplicates=None)
    return tuple(str(each) for each in found if each.severity == "error" and each.kind not in unused)


def _lists(answers: Answers) -> dict[str, Any]:
    """Lists as a run takes them: pairs where every document has a score, ids where some have none."""
    whole = all(score is not None for listed in answers.lists.values() for _, score in listed)
    if whole:
        return dict(answers.lists)
    return {query: [doc for doc, _ in listed] for query, listed in answers.lists.items()}
