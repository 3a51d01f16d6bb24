"""bench(): a bench.yaml in, a BenchResult and its result folder out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.benchmark import comparison as comparing
from steelyard.benchmark import folder as files
from steelyard.benchmark.across import BenchAcross
from steelyard.benchmark.approximation import Approximation, approximations
from steelyard.benchmark.cache import (
    CACHE,
    Answers,
    AnswerStore,
    ReturnedTexts,
    cache_key,
    id_notes,
    index_store,
    locked,
    other_indexes,
)
from steelyard.benchmark.chunkings import Chunking, all_chunks, chunkings_of, merged_qrels
from steelyard.benchmark.config import CHUNK_MEASURES, Bench, check_bench, check_by, read_bench
from steelyard.benchmark.history import append_history, check_history
from steelyard.benchmark.judged import ABOUT_QUESTIONS, JUDGMENTS_USED, with_judgments
from steelyard.benchmark.result import BenchResult
from steelyard.benchmark.retrieval import CostRow, Job, Progress, index_all, measure_throughput, retrieve_all
from steelyard.benchmark.specs import Spec, without_corpus
from steelyard.comparison.result import Comparison
from steelyard.datasets import Dataset, validate_dataset
from steelyard.dialects import dialect
from steelyard.errors import InputError, NoQrelsError, problem_report
from steelyard.io.datasets import dataset_named
from steelyard.judgments import changed_texts
from steelyard.lazy import polars as pl
from steelyard.masking import masked
from steelyard.notes import Note, note, sentence
from steelyard.quality.check import Check, quick_check
from steelyard.retrievers.adapters.documents import HASH
from steelyard.retrievers.embeddings import clear_vectors, stored_vectors
from steelyard.run import Run
from steelyard.temporary import remove_left_over
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.benchmark.mlflow import Store

VECTORS = "vectors"
REPORTED = ("no-relevant-document", "relevant-not-in-corpus", "relevant-distractor")
"""Findings of `check` that a bench reports in other words."""

LOG = logging.getLogger("steelyard.bench")


def bench(
    source: str | Path | Bench | Mapping[str, Any],
    output: str | Path | None = None,
    *,
    fresh: bool = False,
    strict: bool = False,
    history: str | Path | None = None,
    mlflow: bool | str = False,
    watch: Progress | None = None,
) -> BenchResult:
    """Run retrievers over a dataset, measure their time, evaluate and compare them, and write a result folder.

    source: a bench.yaml, a Bench, or a mapping with the same keys.
    output: the result folder; default: `NAME-result` next to NAME.yaml, and `./bench-result` for a Bench or a mapping.
    fresh: run every query again. Otherwise, answers for the same documents, queries, settings, code and version are
    taken from the cache.
    strict: raise if the qrels have errors (those of `steelyard validate`) instead of reporting them in `problems`.
    history: a file to which one line on this result is added; default: `history` of the bench, relative to bench.yaml.
    mlflow: log the result to MLflow: to the URI of a store, or with True to mlflow.db in the working directory.
    watch: called with the current step, how much of it is done, and its total.

    The folder is locked: a second bench in it is an error.
    A retriever that fails on queries does not stop the others: see `failed` of the result. Runs of an earlier bench
    that this one does not have are removed from the folder: see `removed`. A dataset without qrels is not evaluated:
    the result has the lists, their times and how far they agree (`lists`). Warnings are logged to `steelyard.bench`.
    With `datasets`, the result is a BenchAcross: a result per dataset, in a folder of its name, and one across them.
    """
    remove_left_over()
    path: Path | None = None
    beside, default = Path(), Path("bench-result")
    if isinstance(source, (str, Path)):
        path = Path(source)
        beside, default = path.parent, path.parent / f"{path.stem}-result"
        config, specs = read_bench(path)
    else:
        config, specs = check_bench(source)
    folder = Path(output) if output is not None else default
    progress = watch or (lambda step, done, total: None)
    record = Path(history) if history is not None else beside / config.history if config.history else None
    if record is not None:
        check_history(record)
        config = config.model_copy(update={"history": str(record)})
    store: Store | None = None
    if mlflow:
        from steelyard.benchmark.mlflow import LOCAL_STORE, open_store

        # It is opened before anything is run, so that an error comes first.
        store = open_store(LOCAL_STORE if mlflow is True else mlflow)
    if config.datasets is None:
        result = _bench(config, specs, path, folder, fresh, strict, progress)
        _remember(record, result, beside, store)
        return result
    files.check_own_folder(folder, (), config.datasets)
    results: dict[str, BenchResult] = {}
    with ExitStack() as stack:
        for number, (name, dataset) in enumerate(config.datasets.items(), 1):
            single, specs = check_bench(config.model_copy(update={"dataset": dataset, "datasets": None}), path)
            named = _named_progress(f"{name} (dataset {number} of {len(config.datasets)})", progress)
            whole = None if results else stack
            results[name] = _bench(single, specs, path, folder / name, fresh, strict, named, name, whole)
        many = BenchAcross.of(config, results, folder)
        many.write()
    _remember(record, many, beside, store)
    LOG.info("The result over all datasets is in %s.", folder)
    return many


def _remember(file: Path | None, result: BenchResult, folder: Path, store: Store | None) -> None:
    """Add a line per dataset to the history, and a run to MLflow; without qrels a history has no values to keep."""
    for single in result.results.values() if isinstance(result, BenchAcross) else [result]:
        if file is not None and single.evaluated is not None:
            append_history(file, single, folder)
    if store is not None:
        from steelyard.benchmark.mlflow import log_bench

        log_bench(store, result, folder)
        LOG.info("The result is in the MLflow store %s.", masked(store.uri))


def _named_progress(name: str, progress: Progress) -> Progress:
    """Progress with the name of a dataset before each step."""
    return lambda step, done, total: progress(f"{name}: {step}", done, total)


def _bench(
    config: Bench,
    specs: Sequence[Spec],
    path: Path | None,
    folder: Path,
    fresh: bool,
    strict: bool,
    progress: Progress,
    name: str | None = None,
    whole: ExitStack | None = None,
) -> BenchResult:
    """A bench over one dataset; of several, `name` is its name. Until `whole` ends, the folder over all is locked."""
    beside = path.parent if path else Path()
    parts: list[Any] = [config.queries, config.corpus, config.qrels]
    read = [part.get("path") if isinstance(part, Mapping) else part for part in parts]
    files.check_own_folder(folder, [beside / file for file in read if isinstance(file, (str, Path))])
    dataset = _read_dataset(config, specs, beside, name)
    problems = _qrels_problems(dataset, config, strict)
    _log_check(dataset, config, folder)
    chunkings = chunkings_of(dataset, config.chunkers, config.evidence, config.overlap, beside)
    if config.measures == CHUNK_MEASURES and chunkings[0].qrels.ranges is None:
        config = config.model_copy(update={"measures": CHUNK_MEASURES[-1:]})
    queries = _queries_to_run(dataset, chunkings[0])
    comparison: Comparison | None = None
    notes: tuple[Note, ...] = ()
    approximation: tuple[Approximation, ...] = ()
    if whole is not None:
        whole.enter_context(locked(folder.parent))
    with locked(folder), closing(ReturnedTexts(folder / CACHE, dataset.corpus, fresh)) as texts:
        jobs, cached = _retrieve(specs, chunkings, queries, config, folder / CACHE, fresh, texts, progress)
        progress("evaluating", 0, 1)
        runs, rows = _collect(specs, jobs, chunkings, config, cached, texts)
        if len(chunkings[0].qrels.queries):
            comparison, notes = _compare(config, dataset, chunkings, runs, rows)
            comparison = replace(comparison, judge_command=files.command_of("judge", folder))
            approximation = approximations(rows, runs, comparison, chunkings, comparing.measure_options(dict(config)))
        result = BenchResult(
            bench=config,
            dataset=all_chunks(dataset, chunkings),
            runs=runs,
            rows=tuple(rows),
            evaluated=comparison,
            folder=folder,
            problems=problems,
            chunk_notes=notes,
            rules={rule: merged_qrels([part.rules[rule] for part in chunkings]) for rule in chunkings[0].rules},
            approximation=approximation,
            input_notes=tuple(_input_notes(config, runs, rows, dataset, texts)),
            check=_checked(dataset, config, runs),
            source=path,
            across_page=files.ACROSS_PAGE if name else "",
        )
        progress("writing", 0, 1)
        kept = {file.name for job in jobs if job.saved is not None for file in job.saved.files}
        files.remove_files(other_indexes(folder / CACHE, kept))
        earlier: Mapping[str, Any] = {}
        with suppress(InputError):
            earlier = files.read_record(folder, earlier=True)
        answers, inputs = {row.answers for row in rows if row.answers}, [spec.run for spec in specs if spec.run]
        leftovers = files.leftover_files(folder, earlier, list(runs), answers, inputs)
        result = replace(result, removed=tuple(result.write(leftovers, texts, comparing.stage_rows(jobs))))
        if (removal := result.removal_note) is not None:
            LOG.warning("%s", sentence(removal))
        LOG.info("The result is in %s.", folder)
        return result


def _input_notes(
    config: Bench, runs: Mapping[str, Run], rows: Sequence[CostRow], dataset: Dataset, texts: ReturnedTexts
) -> list[Note]:
    """The notes on the questions, on the judgments, and on the texts that came back and their ids."""
    codes = (JUDGMENTS_USED, *ABOUT_QUESTIONS)
    notes = [note for note in dataset.notes if config.queries is not None or note.code in codes]
    notes += texts.notes({row.answers: row.run for row in rows if row.answers})
    judged = sorted({doc for doc, _ in dataset.qrels.judged_texts})
    now = {doc: dataset.corpus.texts[doc] for doc in judged if doc in dataset.corpus}
    notes += changed_texts(dataset.qrels, now or dict(texts.rows(judged, "doc_id, text")))
    if len(dataset.corpus):
        return notes
    lists = {name: run.frame["doc_id"].unique(maintain_order=True).to_list() for name, run in runs.items()}
    return notes + id_notes(lists, texts, {row.run for row in rows if row.settings.get("id") == HASH})


def _read_dataset(config: Bench, specs: Sequence[Spec], folder: Path, name: str | None) -> Dataset:
    """The dataset of a bench. Without qrels, it has those of the judgments file beside bench.yaml, or none."""
    try:
        dataset = dataset_named(config.source, folder, judged=config.evidence is None)
    except NoQrelsError:
        if config.chunkers:
            raise
        dataset = dataset_named(config.source, folder, judged=False)
    dataset = replace(dataset, name=name or dataset.name)
    if not dataset.queries:
        raise InputError(f"dataset {dataset.name!r} has no queries; there is nothing to run.")
    if not dataset.corpus and (indexing := [spec for spec in specs if spec.needs_corpus]):
        raise InputError(problem_report("there is no corpus:", [*map(without_corpus, indexing)]))
    check_by(config, dataset)
    return with_judgments(dataset, folder) if config.evidence is None and not config.chunkers else dataset


def _qrels_problems(dataset: Dataset, config: Bench, strict: bool) -> tuple[Note, ...]:
    """The errors in the queries and the qrels, as `validate` finds them; raised if `strict`, otherwise logged."""
    unused = {"unknown-document", "unknown-query"} if config.evidence is not None else set[str]()
    if not len(dataset.corpus):
        unused.add("unknown-document")
    findings = [finding for finding in validate_dataset(dataset, near_duplicates=None) if finding.kind not in unused]
    errors = [finding for finding in findings if finding.severity == "error"]
    problems = tuple(note("dataset-error", kind=error.kind, text=str(error)) for error in errors)
    if problems and strict:
        head = f"dataset {dataset.name!r}: the qrels have errors; nothing was run:"
        raise InputError("\n".join([head, *map(str, problems)]))
    for problem in problems:
        LOG.warning("%s", problem)
    return problems


def _checked(dataset: Dataset, config: Bench, runs: Mapping[str, Run]) -> Check | None:
    """What is wrong with the data, by the checks that cost little; None for chunkings, and without qrels."""
    if config.evidence is not None or config.chunkers or not len(dataset.qrels):
        return None
    answered = {name: run for name, run in runs.items() if len(run)}
    ours = config.dialect == "steelyard"
    return quick_check(dataset, answered, comparing.first_measure(dict(config)) if ours else comparing.DEFAULT_MEASURE)


def _log_check(dataset: Dataset, config: Bench, folder: Path) -> None:
    """Log one line on the findings before any run, if the bench does not report all of them in other words."""
    checked = _checked(dataset, config, {})
    if checked is not None and any(finding.code not in REPORTED for finding in checked.findings):
        count, worst = counted(len(checked.findings), "finding"), checked.findings[0].text.split(". ")[0]
        command = files.command_of("check", folder)
        LOG.warning("check of qrels and questions: %s, worst: %s. After the bench: `%s`.", count, worst, command)


def _queries_to_run(dataset: Dataset, chunking: Chunking) -> dict[str, str]:
    """The judged queries; all of them if there are no qrels."""
    judged = set(chunking.qrels.queries)
    if not judged and chunking.label is None:
        return dict(dataset.queries)
    queries = {query: text for query, text in dataset.queries.items() if query in judged}
    if not queries:
        first, others = list(dataset.queries)[:3], chunking.qrels.queries[:3]
        raise InputError(
            f"dataset {dataset.name!r}: no query is judged, so nothing can be evaluated. The first queries are "
            f"{', '.join(map(repr, first))}, those of the qrels {', '.join(map(repr, others)) or 'none'}: use the "
            "same ids."
        )
    return queries


def _retrieve(
    specs: Sequence[Spec],
    chunkings: Sequence[Chunking],
    queries: Mapping[str, str],
    config: Bench,
    cache: Path,
    fresh: bool,
    texts: ReturnedTexts,
    progress: Progress,
) -> tuple[list[Job], set[str]]:
    """Run the retrievers that have open queries; all jobs, and the labels of those that were cached."""
    if fresh:
        clear_vectors(cache / VECTORS)
    jobs: list[Job] = []
    open_jobs: list[Job] = []
    for chunking in chunkings:
        chunking_jobs = []
        for spec in chunking.specs(specs):
            if spec.retriever is None:
                continue
            store = AnswerStore(cache, cache_key(chunking.fingerprint, spec.name, spec.settings, config.depth))
            saved = index_store(cache, spec.retriever, chunking.corpus)
            if fresh:
                store.clear()
            if fresh and saved is not None:
                saved.clear()
            answers = store.read()
            if not answers.lists:
                texts.forget(store.path.name)
            if answers.unfinished is not None:
                LOG.warning("%s", sentence(note("bench-stopped", run=spec.label, query=answers.unfinished)))
            corpus, doc_id = chunking.corpus, chunking.chunk_id
            chunking_jobs.append(Job(spec, spec.retriever, corpus, answers, store, saved, texts, doc_id))
        unfinished = [job for job in chunking_jobs if job.is_open(list(queries))]
        with stored_vectors(cache / VECTORS):
            index_all(unfinished, progress)
        jobs += chunking_jobs
        open_jobs += unfinished
    if open_jobs:
        retrieve_all(open_jobs, queries, config.depth, config.warmup, progress)
        measure_throughput(open_jobs, queries, config.depth, progress)
    return jobs, {job.spec.label for job in jobs} - {job.spec.label for job in open_jobs}


def _collect(
    specs: Sequence[Spec],
    jobs: Sequence[Job],
    chunkings: Sequence[Chunking],
    config: Bench,
    cached: set[str],
    returned: ReturnedTexts,
) -> tuple[dict[str, Run], list[CostRow]]:
    """The run and the row of every retriever on every chunking, in the order of bench.yaml."""
    by_label = {job.spec.label: job for job in jobs}
    reads_texts = dialect(config.dialect).reads_texts(config.measures)
    runs: dict[str, Run] = {}
    rows: list[CostRow] = []
    for chunking in chunkings:
        texts = dict(chunking.corpus) if reads_texts else None
        corpus_ids = set(chunking.corpus)
        for spec in chunking.specs(specs):
            job = by_label.get(spec.label)
            if spec.run is not None:
                finished = Run.read(spec.run, name=spec.label, **spec.reading)
                if chunking.label is not None:
                    # The ids of the chunking, in place of those in the file of chunks.
                    ids = pl.Series("doc_id", map(chunking.chunk_id, finished.table["doc_id"].to_list()), pl.String)
                    table, empty, notes = finished.table.with_columns(ids), finished.empty, finished.notes
                    finished = Run.from_table(table, finished.ordered, name=spec.label, empty=empty, notes=notes)
                run = Run(finished, seconds=finished.seconds or {}, texts=texts)
                answers = Answers()
                retrieved = finished.table["doc_id"].to_list()
            else:
                assert job is not None
                answers, lists = job.answers, job.answers.lists
                if chunking.label is not None:
                    lists = {q: [(job.doc_id(doc), score) for doc, score in of] for q, of in lists.items()}
                run = Run(lists, name=spec.label, seconds=answers.seconds, texts=texts)
                retrieved = [doc for listed in lists.values() for doc, _ in listed]
            unknown = [doc for doc in retrieved if doc not in corpus_ids] if corpus_ids else []
            if reads_texts and not corpus_ids:
                run = Run(run, texts=dict(returned.rows(dict.fromkeys(retrieved), "doc_id, text")))
            chunks = None if chunking.label is None else len(chunking.corpus)
            chunked = {"chunker": chunking.label, "chunks": chunks, "chunk_tokens": chunking.mean_tokens}
            file = None if job is None else job.store.path.name
            runs[spec.label] = run
            rows.append(CostRow.of(spec, answers, unknown, spec.label in cached, answers=file, **chunked))
    return runs, rows


def _compare(
    config: Bench, dataset: Dataset, chunkings: Sequence[Chunking], runs: Mapping[str, Run], rows: Sequence[CostRow]
) -> tuple[Comparison, tuple[Note, ...]]:
    """The comparison of the runs, and the notes on the chunkings; an error if every retriever failed."""
    if all(row.broken for row in rows):
        errors = [f"{row.run}: {next(iter(row.errors.values()))}" for row in rows]
        raise InputError(problem_report("every retriever failed on every query:", errors))
    comparison = comparing.compare_runs(
        dict(config),
        config.composite,
        {str(chunking.label): chunking.qrels for chunking in chunkings} if config.chunkers else dataset.qrels,
        runs,
        list(map(vars, rows)),
        dataset.queries.columns,
        {rule: {str(chunking.label): chunking.rules[rule] for chunking in chunkings} for rule in chunkings[0].rules},
    )
    if not config.chunkers:
        return comparison, ()
    chunking_of = {row.run: str(row.chunker) for row in rows}
    notes = comparing.chunking_notes(dataset, chunkings, comparison, chunking_of, runs)
    return comparing.with_notes(comparison, notes), notes
