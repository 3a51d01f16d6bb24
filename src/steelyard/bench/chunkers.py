"""A bench's chunkers: every retriever on every chunking, judged by one answer key, in one table.

The chunks of a chunking are `label:document#number`, so that chunkings share a result folder. What is
relevant differs by chunking: each run is measured against the judgments of its own chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import floor, log10
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.bench.specs import Spec, points_of
from steelyard.chunking import Chunker, chunk_documents, chunker, token_counts
from steelyard.comparison.compare import compare
from steelyard.comparison.result import Comparison, Source
from steelyard.comparison.scores import COMPOSITE, ScoreTable
from steelyard.comparison.slices import COMPLEXITY, column_values
from steelyard.comparison.testing import ComparisonPlan
from steelyard.datasets import Dataset
from steelyard.datasets.corpus import Corpus
from steelyard.errors import InputError
from steelyard.evidence.evidence import Evidence
from steelyard.measures.grammar import Measure, parse
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted, listed, notes_by_names, worded


@dataclass(frozen=True)
class Chunking:
    """One chunking of a dataset: its chunks by id, the judgments of them, and their number and mean size.

    A bench without chunkers has one, with no label: the documents as they are.
    """

    label: str | None
    corpus: Mapping[str, str]
    qrels: Qrels
    fingerprint: str
    mean_tokens: float | None = None

    def spec(self, spec: Spec) -> Spec:
        """The retriever on this chunking, with an index of its own and a label that says so."""
        if self.label is None:
            return spec
        return replace(spec, label=run_label(spec.label, self.label), retriever=deepcopy(spec.retriever))


def run_label(retriever: str, chunking: str) -> str:
    """The name of a retriever's row on a chunking.

    >>> run_label("bm25-okapi", "fixed-200/20")
    'bm25-okapi on fixed-200/20'
    """
    return f"{retriever} on {chunking}"


def problems_of(
    chunkers: Sequence[Any], specs: Sequence[Spec], by: str | None
) -> list[tuple[tuple[Any, ...], str]]:
    """What is wrong with a bench's chunkers, as (place, what)."""
    problems: list[tuple[tuple[Any, ...], str]] = []
    seen: set[str] = set()
    for place, entry in enumerate(chunkers):
        try:
            labels = [cutter.label for cutter in _spread(entry)]
        except InputError as error:
            problems.append((("chunkers", place), str(error)))
            continue
        for label in labels:
            if label in seen:
                what = f"two chunkers are called {label!r}; give one a name of its own (name: ...)"
                problems.append((("chunkers", place), what))
            seen.add(label)
    if chunkers:
        problems += [
            (
                ("retrievers", spec.place),
                f"{spec.label}: a finished run has chunks of its own and cannot join a bench of chunkers",
            )
            for spec in specs
            if spec.run is not None
        ]
    if chunkers and by == COMPLEXITY:
        problems.append(
            (
                ("by",),
                "complexity counts relevant documents, which differ by chunking; name a column of the queries",
            )
        )
    return problems


def labels_of(chunkers: Sequence[Any], specs: Sequence[Spec]) -> tuple[str, ...]:
    """The names of the rows: every chunking with every retriever."""
    if not chunkers:
        return tuple(spec.label for spec in specs)
    return tuple(run_label(spec.label, cutter.label) for cutter in _chunkers(chunkers) for spec in specs)


def _chunkers(entries: Sequence[Any]) -> list[Chunker]:
    """The chunkers that entries stand for."""
    return [cutter for entry in entries for cutter in _spread(entry)]


def _spread(entry: Any) -> list[Chunker]:
    """The chunkers of an entry: one, or one for every combination of settings that were given as lists."""
    if (
        not isinstance(entry, Mapping)
        or len(entry) != 1
        or not isinstance(next(iter(entry.values())), Mapping)
    ):
        return [chunker(entry)]
    name, settings = next(iter(entry.items()))
    try:
        points = points_of(settings)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    made = [chunker({name: point.settings}) for point in points]
    if "name" not in settings and len({cutter.label for cutter in made}) == len(made):
        return made
    return [
        chunker({name: {**point.settings, "name": point.label(cutter.label)}})
        for cutter, point in zip(made, points, strict=True)
    ]


def chunkings_of(
    dataset: Dataset, chunkers: Sequence[Any], evidence: Any, overlap: str, folder: Path
) -> list[Chunking]:
    """The chunkings of a dataset, each judged; without chunkers the documents as they are.

    Without `evidence` the answer key is the dataset's judgments: a chunk of a relevant document counts.
    """
    if not chunkers:
        return [Chunking(None, dataset.corpus, dataset.qrels, dataset.fingerprint)]
    key = Evidence.from_qrels(dataset.qrels) if evidence is None else _key(evidence, folder)
    return [_chunking(dataset, cutter, key, overlap) for cutter in _chunkers(chunkers)]


def _key(named: Any, folder: Path) -> Evidence:
    """The evidence that a bench names: a file beside it, a `path` with options, or the evidence itself."""
    if isinstance(named, str):
        return Evidence.read(folder / named)
    if isinstance(named, Mapping) and isinstance(named.get("path"), str):
        options = {str(name): value for name, value in named.items() if name != "path"}
        if isinstance(options.get("corpus"), str):
            options["corpus"] = folder / options["corpus"]
        return Evidence.read(folder / named["path"], **options)
    return Evidence.of(named)


def _chunking(dataset: Dataset, cutter: Chunker, key: Evidence, overlap: str) -> Chunking:
    chunks = chunk_documents(dataset.corpus.texts, cutter)
    if not chunks:
        raise InputError(
            f"chunker {cutter.label}: the documents of {dataset.name!r} are empty; there are no chunks."
        )
    named = [replace(chunk, chunk_id=f"{cutter.label}:{chunk.chunk_id}") for chunk in chunks]
    judged = key.judge(named, overlap=overlap, documents=dataset.corpus.texts)  # type: ignore[arg-type]
    rows = [
        (query, doc if doc.startswith(f"{cutter.label}:") else f"{cutter.label}:{doc}", float(grade), target)
        for query, doc, grade, target in judged.frame.drop_nulls("doc_id").iter_rows()
    ]
    qrels = Qrels.from_rows(rows, judged.queries)
    qrels.notes = judged.notes
    digest = hashlib.sha256(dataset.fingerprint.encode())
    for chunk in named:
        digest.update(f"{chunk.chunk_id}\0{chunk.start}\0{chunk.end}\n".encode())
    tokens = sum(len(chunk.text.split()) for chunk in named) / len(named)
    corpus = {chunk.chunk_id: chunk.text for chunk in named}
    return Chunking(cutter.label, corpus, qrels, digest.hexdigest()[:16], tokens)


def joined(dataset: Dataset, chunkings: Sequence[Chunking]) -> Dataset:
    """The chunks of all chunkings as one dataset, for the result folder; the dataset itself without chunkers."""
    if chunkings[0].label is None:
        return dataset
    corpus = {chunk: text for chunking in chunkings for chunk, text in chunking.corpus.items()}
    judged = _together([chunking.qrels for chunking in chunkings])
    return replace(dataset, corpus=Corpus.of(corpus), qrels=judged)


def _together(judgments: Sequence[Qrels]) -> Qrels:
    """The judgments of all chunkings in one."""
    rows = [
        (query, doc, float(grade), target)
        for own in judgments
        for query, doc, grade, target in own.frame.drop_nulls("doc_id").iter_rows()
    ]
    return Qrels.from_rows(rows, judgments[0].queries)


def own_judgments(qrels: Qrels, label: str) -> Qrels:
    """The judgments of one chunking's chunks, out of those of all."""
    rows = [
        (query, doc, float(grade), target)
        for query, doc, grade, target in qrels.frame.drop_nulls("doc_id").iter_rows()
        if doc.startswith(f"{label}:")
    ]
    return Qrels.from_rows(rows, qrels.queries)


def compare_chunkings(
    judgments: Mapping[str, Qrels],
    runs: Mapping[str, Run],
    chunking_of: Mapping[str, str],
    measures: Sequence[str] | None,
    plan: ComparisonPlan,
    *,
    by: str | None = None,
    queries: Any = None,
    **options: Any,
) -> Comparison:
    """Runs on several chunkings in one comparison, each measured against the judgments of its own.

    `chunking_of` names each run's chunking; `options` are those of `compare` that say how to measure.
    """
    parts = [
        compare(
            _without_notes(own),
            {name: run for name, run in runs.items() if chunking_of[name] == label},
            measures,
            **options,
        )
        for label, own in judgments.items()
    ]
    asked = tuple(dict.fromkeys(query for part in parts for query in part.score_tables[0].queries))
    boards = [
        _stacked([part.score_tables[at] for part in parts], asked) for at in range(len(parts[0].score_tables))
    ]
    components = [
        None if parts[0].components[at] is None else _stacked([part.components[at] for part in parts], asked)
        for at in range(len(parts[0].components))
    ]
    return Comparison.of(
        score_tables=boards,
        plan=plan.checked().with_baseline(plan.baseline, boards[0].runs),
        weights=parts[0].weights,
        components=components,
        sliced=None if by is None else (by, column_values(queries, by)),
        coverage={name: covered for part in parts for name, covered in part.coverage.items()},
        notes=(
            "Every run is measured against the judgments of its own chunking.",
            *dict.fromkeys(note for part in parts for note in part.input_notes),
        ),
        dialect=parts[0].dialect,
        source=Source(
            _together(list(judgments.values())),
            runs,
            {name: a for part in parts if part.source for name, a in part.source.alignments.items()},
            chunked=True,
        ),
    )


def _without_notes(qrels: Qrels) -> Qrels:
    """The judgments without what was noted of their chunking: that is said once, not with every run."""
    bare = Qrels(qrels)
    bare.notes = ()
    return bare


def _stacked(boards: Sequence[ScoreTable | None], asked: tuple[str, ...]) -> ScoreTable:
    """The boards of several chunkings as one, on one set of queries; NaN where a board leaves one out."""
    held = [board for board in boards if board is not None]
    parts = []
    for board in held:
        place = {query: at for at, query in enumerate(board.queries)}
        values = np.full((len(board.runs), len(board.columns), len(asked)), np.nan)
        for at, query in enumerate(asked):
            if query in place:
                values[:, :, at] = board.values[:, :, place[query]]
        parts.append(values)
    runs = tuple(run for board in held for run in board.runs)
    return replace(held[0], runs=runs, queries=asked, values=np.concatenate(parts))


def chunk_notes(
    dataset: Dataset,
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> tuple[str, ...]:
    """The notes on the chunkings, each said once: the text read, queries without a key, and what borders did."""
    reading = _reading_note(chunkings, comparison, chunking_of, runs)
    return (*([reading] if reading else []), *_query_notes(dataset, chunkings[0]), *_border_notes(chunkings))


def with_notes(comparison: Comparison, notes: Sequence[str]) -> Comparison:
    """The comparison with more notes, before its own."""
    return replace(
        comparison, input_notes=(*notes, *comparison.input_notes), notes=(*notes, *comparison.notes)
    )


def _query_notes(dataset: Dataset, chunking: Chunking) -> list[str]:
    """Queries that the dataset has and the key does not, and the other way round."""
    judged, asked = chunking.qrels.queries, dataset.queries
    known = set(judged)
    bare, strange = [q for q in asked if q not in known], [q for q in judged if q not in asked]
    notes = []
    if bare:
        notes.append(
            f"{len(bare):,} of {counted(len(asked), 'query', 'queries')} {worded(len(bare), 'has', 'have')} no "
            f"judgment and {worded(len(bare), 'was', 'were')} not asked ({_shown(bare)})."
        )
    if strange:
        notes.append(
            f"{counted(len(strange), 'judged query is', 'judged queries are')} not in the dataset "
            f"({_shown(strange)})."
        )
    return notes


def _shown(queries: Sequence[str]) -> str:
    return ", ".join(map(repr, queries[:3])) + (", ..." if len(queries) > 3 else "")


def _border_notes(chunkings: Sequence[Chunking]) -> list[str]:
    """What became of the key on each chunking: a line for all chunkings that the same is said of."""
    alike = notes_by_names(
        {str(c.label): [str(note).rstrip(".") for note in c.qrels.notes] for c in chunkings}
    )
    return [
        f"{'Every chunking' if len(labels) == len(chunkings) > 1 else listed(labels)}: {'; '.join(notes)}."
        for labels, notes in alike.items()
    ]


def _reading_note(
    chunkings: Sequence[Chunking],
    comparison: Comparison,
    chunking_of: Mapping[str, str],
    runs: Mapping[str, Run],
) -> str | None:
    """How much text the best runs read, where they are ranked at a cutoff that does not count it."""
    ranking = _ranking_measures(comparison)
    cutoffs = [m.cutoff for m in ranking if m.cutoff is not None and m.definition.cutoff_kind == "rank"]
    if len(chunkings) < 2 or not cutoffs or any(m.parameters.get("budget") is not None for m in ranking):
        return None
    deepest = int(max(cutoffs))
    order = [row.run for row in comparison.leaderboard_rows if row.k == comparison.score_tables[0].k]
    others = [run for run in order if chunking_of[run] != chunking_of[order[0]]]
    placed = ((order[0], "first"), (order[1], "second"), (others[0], "the best on another chunking"))
    places = dict(reversed(placed))
    tokens = {str(chunking.label): token_counts(chunking.corpus) for chunking in chunkings}
    read = {run: _tokens_read(runs[run], tokens[chunking_of[run]], deepest) for run in places}
    key = comparison.keys[0]
    what = "the composite score" if key == COMPOSITE else key
    more = comparison.score_tables[0].columns[0].better == "more"
    told = "favours big chunks" if more else "does not count how much text is read"
    spent = listed(
        [
            f"{count:,.0f} with {run} ({places[run]})"
            for run, count in sorted(read.items(), key=lambda item: order.index(item[0]))
        ]
    )
    return (
        f"{what[0].upper()}{what[1:]} {told}: the first {deepest} hold, in tokens a query, {spent}. "
        f"{_advice(comparison, ranking, min(read.values()))}"
    )


def _ranking_measures(comparison: Comparison) -> list[Measure]:
    """The measure that ranks the runs, or those that the composite is made of."""
    first, parts = comparison.score_tables[0].columns[0], comparison.components[0]
    columns = parts.columns if first.key == COMPOSITE and parts is not None else (first,)
    return [column.measure for column in columns if column.measure is not None]


def _tokens_read(run: Run, tokens: Mapping[str, int], k: int) -> float:
    """Mean tokens of the first k documents, over the queries that the run answers."""
    import polars as pl

    near = run.frame.filter(pl.col("rank") <= k)
    return sum(tokens.get(doc, 0) for doc in near["doc_id"].to_list()) / max(1, len(run.queries))


def _advice(comparison: Comparison, ranking: Sequence[Measure], least: float) -> str:
    """Which measure with a token budget to rank by: one of the bench's own, or one to add."""
    for column in comparison.score_tables[0].columns:
        if column.measure is not None and column.measure.parameters.get("budget") is not None:
            return f"{column.key} gives all the same amount of text: name it first to rank by it."
    budget = _round(least)
    own = ranking[0] if len(ranking) == 1 and ranking[0].definition.parameter("budget") else None
    if own is None:
        meant = parse(f"R(per=target, budget={budget})")
    else:
        meant = parse(own.name)(**dict(own.given), budget=budget)
    return f"{meant} gives all the same amount of text: add it, first of the measures, to rank by it."


def _round(tokens: float) -> int:
    """A number of tokens in two digits, and 1 at least.

    >>> _round(483.2), _round(12_345), _round(0.2)
    (480, 12000, 1)
    """
    if tokens < 1:
        return 1
    digits = 10 ** max(0, floor(log10(tokens)) - 1)
    return int(round(tokens / digits) * digits)
