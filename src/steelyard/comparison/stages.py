"""Stages of a pipeline: where relevant documents are lost, and what each stage costs in the measure.

A pipeline is a chain of stages or a small graph (lexical and dense lists that are fused). It is read as a series of
states: the lists in use after each stage, before a fusion the union of those that are fused. A document is lost in a
stage if the state before has it and the state after does not. The ceiling of a state is the value of its documents in
ideal order, so the losses of the stages and of the ordering add up to the loss of the pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from steelyard.alignment.alignment import Alignment, align, starts_of
from steelyard.alignment.hits import Floats, Repeats
from steelyard.alignment.ranking import ranked_rows
from steelyard.alignment.scans import token_counts
from steelyard.checks import text_value
from steelyard.comparison.compare import slice_values
from steelyard.comparison.slices import column_values, in_order, slice_labels
from steelyard.comparison.testing import ComparisonPlan
from steelyard.coverage import level_of, refuse_unmatched, with_doubts
from steelyard.dialects import Dialect
from steelyard.errors import InputError, MeasureError, PolicyError, did_you_mean
from steelyard.evaluation import judged_qrels, measure_values, on_scale, prepare, scores_of
from steelyard.ids import kind_of
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.measures.compute import averaged, is_over_targets
from steelyard.measures.grammar import Measure
from steelyard.notes import Note
from steelyard.options import Options, Policies, check_names
from steelyard.qrels import Qrels
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.run import Run, readable_again
from steelyard.scores import Scores
from steelyard.statistics import adjust, mean_intervals, paired_tests
from steelyard.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

NEVER, BELOW, DELIVERED = "never retrieved", "below the cutoff", "delivered"
ORDERING = "ordering"  # What the last list loses because its documents are not in ideal order.
BUDGET = "budget"  # The stage of a measure with a budget of tokens: it cuts the last list.
CALLS, LIST = "calls", "list"
NOTHING = 1e-9  # A loss below this is rounding.


@dataclass(frozen=True, eq=False)
class StagesData:
    """The loss of a pipeline by stage. All arrays have one column per query of `queries`.

    steps: the stages in their order; first stages that run in parallel are one step, as in 'lexical + dense'.
    ceilings, values: one row per step; a step of parallel stages has no list of its own, and its values are NaN.
    target_fates: one row per target (without targets: per relevant document) with its query, its fate, and the best
    rank of its documents in each stage. moves: per step, relevant documents that entered and left the first k. added,
    below_depth: as in `table`, per step. own: per parallel stage, its ceiling and what the joint ceiling would lose
    without it. run: the run of a bench, if it is one; others: its other runs with stages. lists: what the stages before
    the last one returned, and with a budget all of them. reads: what each stage read. calls: see `calls_table`.
    """

    measure: Measure
    steps: tuple[str, ...]
    queries: Sequence[str]
    best: Floats
    ceilings: Floats
    values: Floats
    fates: Mapping[str, int]
    target_fates: pl.DataFrame
    moves: Sequence[tuple[int, int] | None]
    added: Sequence[int | None]
    below_depth: Sequence[int | None]
    own: Mapping[str, tuple[float, float]]
    sliced: tuple[str, Mapping[str, object]] | None
    notes: Sequence[Note]
    alpha: float
    unit: str
    run: str = ""
    others: tuple[str, ...] = ()
    lists: Mapping[str, Run] = field(default_factory=dict)
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)
    calls: pl.DataFrame | None = None

    @cached_property
    def losses(self) -> Floats:
        """One row per step and one for the ordering (`parts`): what each query loses there."""
        states = np.vstack([self.best, self.ceilings, self.values[-1]])
        return np.asarray(states[:-1] - states[1:])

    @property
    def parts(self) -> tuple[str, ...]:
        return (*self.steps, ORDERING)

    @property
    def value(self) -> float:
        """The mean of the pipeline: of the last list as it is."""
        return float(self.values[-1].mean())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One mapping per step and one for the ordering, as in `table` and `ordering`."""
        low, high = self.measure.range
        lost_intervals = np.clip(mean_intervals(self.losses), low - high, high - low).tolist()
        intervals = np.clip(mean_intervals(self.ceilings), low, high).tolist()
        targets = [self.fates[NEVER], *(self.fates[f"lost in {step}"] for step in self.steps[1:]), self.fates[BELOW]]
        rows: list[dict[str, Any]] = []
        for place, (part, (low, high), lost) in enumerate(zip(self.parts, lost_intervals, targets, strict=True)):
            row: dict[str, Any] = {"stage": part, "lost": float(self.losses[place].mean()), "low": low, "high": high}
            row["targets_lost"] = lost
            if place < len(self.steps):
                row["ceiling_low"], row["ceiling_high"] = intervals[place]
                row["lifted"], row["pushed"] = self.moves[place] or (None, None)
                row |= {"ceiling": float(self.ceilings[place].mean()), "value": float(self.values[place].mean())}
                row |= {"below_depth": self.below_depth[place], "added": self.added[place]}
            rows.append(plain_values(row))
        return rows

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per stage: ceiling, value, lost with its interval, and targets; `ordering` has the rest of the loss.

        lifted, pushed: relevant documents that entered or left the first k; added: those that no stage before has.
        below_depth: lost targets that were ranked deeper than the number of documents that this stage returned.
        """
        return pl.DataFrame([{name: row[name] for name in _SCHEMA} for row in self.rows[:-1]], schema=_SCHEMA)

    @property
    def ordering(self) -> dict[str, Any]:
        """What the last list loses because its documents are not in ideal order: lost, low, high."""
        return {name: self.rows[-1][name] for name in ("lost", "low", "high")}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """One row per query: the best value, the ceiling after each stage, what each one lost, and the value."""
        columns: dict[str, Any] = {"query_id": pl.Series(list(self.queries), dtype=pl.String), "best": self.best}
        columns |= {f"ceiling {step}": row for step, row in zip(self.steps, self.ceilings, strict=True)}
        columns |= {f"lost {part}": row for part, row in zip(self.parts, self.losses, strict=True)}
        return pl.DataFrame({**columns, "value": self.values[-1]})

    @cached_property
    def slices(self) -> pl.DataFrame | None:
        """One row per value of the column of `by`: the queries, the best value, what each part lost, and the value."""
        if self.sliced is None:
            return None
        labels = slice_labels(self.queries, self.sliced[1])
        rows = []
        for value in in_order(labels):
            chosen = np.array([label == value for label in labels])
            row = {self.sliced[0]: value, "queries": int(chosen.sum()), "best": float(self.best[chosen].mean())}
            lost = self.losses[:, chosen].mean(axis=1).tolist()
            row |= {f"lost {part}": loss for part, loss in zip(self.parts, lost, strict=True)}
            rows.append({**row, "value": float(self.values[-1][chosen].mean())})
        return pl.DataFrame(rows)

    @cached_property
    def verdict(self) -> str:
        """The part that loses most, if it loses significantly more than every other (paired t tests)."""
        means = self.losses.mean(axis=1)
        order = np.argsort(-means, kind="stable")
        if not means[order[0]] > NOTHING:
            return f"Nothing to gain: {self.measure} is {self.value:.4f}, and {self.best.mean():.4f} is the best value."
        gained = -means[means < -NOTHING].sum()
        of = f"of the {means[means > 0].sum():.2f} lost{f'; {gained:.2f} gained back' if gained else ''}"
        (top, most), (second, less) = ((self.parts[place], means[place]) for place in order[:2])
        if all(test.p < self.alpha for test in paired_tests(self.losses[order[0]] - self.losses[order[1:]])):
            return f"Work on: {top} ({most:.2f} {of})"
        return f"No stage loses significantly more than the others: {top} ({most:.2f}) and {second} ({less:.2f} {of})"

    def difference(self, other: StagesData) -> pl.DataFrame:
        """Which stage explains the difference to another pipeline with the same stages: one row per part of the loss.

        gained: what this pipeline loses less there, with its interval and the p-value of a paired t test over the
        queries of both, corrected (Holm) for the number of parts. The gains add up to the difference of the values.
        """
        if self.steps != other.steps or self.measure.spelled != other.measure.spelled:
            one, two = (f"{', '.join(pipeline.steps)} by {pipeline.measure}" for pipeline in (self, other))
            raise InputError(f"the pipelines differ in their stages or their measure: {one}, and {two}.")
        places = {query: place for place, query in enumerate(other.queries)}
        shared = [(place, places[query]) for place, query in enumerate(self.queries) if query in places]
        if not shared:
            raise InputError("the two pipelines share no query.")
        mine, theirs = map(list, zip(*shared, strict=True))
        gains = np.vstack([other.losses[:, theirs] - self.losses[:, mine], self.best[mine] - other.best[theirs]])
        gains = gains if np.abs(gains[-1]).max() > NOTHING else gains[:-1]
        p_values = adjust([test.p for test in paired_tests(gains)])
        most = 2 * (self.measure.range[1] - self.measure.range[0])
        low, high = np.clip(mean_intervals(gains), -most, most).T
        columns = {"gained": gains.mean(axis=1), "low": low, "high": high, "p_adjusted": p_values}
        return pl.DataFrame({"stage": (*self.parts, "best")[: len(gains)], **columns})


class Stages(Documented, StagesData):
    """The result of `stages`: its data, and the output formats."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `stages`."""
        data = {
            "steelyard": __version__,
            **({"run": self.run} if self.run else {}),
            "measure": str(self.measure),
            "queries": len(self.queries),
            "best": float(self.best.mean()),
            "value": self.value,
            "verdict": self.verdict,
            "targets": self.target_fates.height,
            "fates": dict(self.fates),
            "stages": self.table.to_dicts(),
            "ordering": self.ordering,
        }
        if self.own:
            data["parallel"] = [{"stage": name, "ceiling": pair[0], "adds": pair[1]} for name, pair in self.own.items()]
        frames = {"calls": self.calls, "slices": self.slices}
        data |= {name: frame.to_dicts() for name, frame in frames.items() if frame is not None}
        return {**plain_values(data), "notes": [note.to_dict() for note in self.notes]}

    def data_table(self) -> Table:
        """One row per stage, as in `table`."""
        return frame_table(self.table)

    def document(self) -> Document:
        """The verdict, the stages and the slices."""
        return cast(Document, looked_up("steelyard.report.stages:stages_document")(self))

    def _page(self, folder: Path | None) -> str:
        """The flow of the targets from stage to stage, the table, and the queries of every fate."""
        return cast(str, looked_up("steelyard.report.stages:stages_page")(self))


_SCHEMA: dict[str, Any] = {"stage": str}
_SCHEMA |= dict.fromkeys(("ceiling", "value", "lost", "low", "high", "ceiling_low", "ceiling_high"), float)
_SCHEMA |= dict.fromkeys(("targets_lost", "below_depth", "lifted", "pushed", "added"), int)


def stages(
    qrels: Any,
    stages: Mapping[str, Any] | str | Path | None = None,
    measure: str | Measure | None = None,
    *,
    inputs: Mapping[str, Sequence[str]] | None = None,
    by: str | None = None,
    queries: Any = None,
    alpha: float = 0.05,
    dialect: str | Dialect = "steelyard",
    **options: Unpack[Policies],
) -> Stages:
    """Where a pipeline loses relevant documents, and what each stage costs in a measure.

    qrels: as in `evaluate`. stages: the list that each stage returned, by its name, in the order of the pipeline;
    each is anything that `evaluate` takes as a run. A query that is missing from a list counts as an empty list. A stage
    with several calls per question is {"calls": [run, run]}: its list is that of all calls, every document once, or
    the run under "list". A path is an export of OpenTelemetry spans, one JSON object per line.
    measure: a mean over queries of which more is better; default nDCG@10. With a budget of tokens, as in R(budget=600),
    `budget` is the last stage: the documents of the list before it that fit. The ceilings are those without a budget.
    inputs: the stages that a stage reads, as in {"fuse": ["lexical", "dense"]}. A stage that is not in it reads the
    stage before it, unless another stage names that one: then it is a first stage.
    by, queries: as in `compare`. alpha: the significance level of the verdict. Other options: as in `evaluate`.

    The result of a bench, or its folder, may take the place of the qrels: `stages` is then the name of a run, by
    default the best one with stages, and the measure by default the bench's first one.

    The ceiling of a stage is the value of its documents in ideal order: by grade, best first. For measures that count
    targets, each next document is the one with the most targets that are not found yet; for AP over targets it is the
    one that adds most to the precisions, which is close to the best order.

    >>> lists = {"retrieve": {"q1": ["x", "a", "b"]}, "rerank": {"q1": ["a", "x"]}}
    >>> result = stages({"q1": ["a", "b", "c"]}, lists, "R@2")
    >>> result.fates
    {'never retrieved': 1, 'lost in rerank': 1, 'below the cutoff': 0, 'delivered': 1}
    >>> result.table.select("stage", "ceiling", "value", "lost").rows()
    [('retrieve', 0.6666666666666666, 0.3333333333333333, 0.0), ('rerank', 0.3333333333333333, 0.3333333333333333, 0.3333333333333333)]
    """  # noqa: E501
    check_names(options, ("inputs", "by", "queries", "alpha", "dialect"))
    ComparisonPlan(alpha=alpha).checked()
    read: list[Note] = []
    if isinstance(stages, (str, Path)) and not _is_result(qrels):
        from steelyard.io.spans import read_spans

        questions = {} if queries is None else {q: str(text) for q, text in column_values(queries, "text").items()}
        stages, read = read_spans(Path(stages), set(judged_qrels(qrels).queries), questions)
    if not isinstance(stages, Mapping):
        if not _is_result(qrels) and not (stages is None and isinstance(qrels, (str, Path))):
            raise InputError(f"the stages are {kind_of(stages)}; expected a mapping, as in {{'retrieve': run}}.")
        of_bench = looked_up("steelyard.benchmark.folder:stages_of")
        return cast(Stages, of_bench(qrels, stages, measure, by=by, queries=queries, alpha=alpha, **options))
    dialect, chosen, named = prepare("nDCG@10" if measure is None else measure, dialect, options)
    if chosen.missing != "zero" or chosen.depth is not None:
        raise PolicyError("`missing` and `depth` do not apply to stages: a list that a stage lacks is an empty list.")
    judged = judged_qrels(qrels)
    key, parsed = next(iter(on_scale(named, judged, dialect).items()))
    check_splits(key, parsed)
    names, whole_measure, inputs = tuple(map(str, stages)), parsed, inputs or {}
    budget = parsed.parameters.get("budget")
    if budget is not None and names:
        if BUDGET in names:
            raise InputError(f"{BUDGET!r} is the stage of {key}; give your stage another name.")
        parsed = replace(parsed, given=tuple(parameter for parameter in parsed.given if parameter[0] != "budget"))
        names, inputs = (*names, BUDGET), {**inputs, BUDGET: names[-1:]}
    reads = stage_inputs(names, inputs)
    steps = steps_of(reads)
    calls = {str(name): list(map(Run.of, call_runs)) for name, run in stages.items() if (call_runs := calls_of(run))}
    runs: dict[str, Any] = {}
    scores: dict[str, Scores] = {}
    for name, given in zip(map(str, stages), stages.values(), strict=True):
        whole = given.get(LIST) if name in calls else given
        runs[name] = run = joined(calls[name]) if whole is None else readable_again(whole)
        aligned = with_doubts(align(judged, run, chosen.ordering, name), judged, run)
        scores[name] = scores_of(aligned, {key: parsed}, dialect, chosen)
    refuse_unmatched({name: stage_scores.coverage for name, stage_scores in scores.items()})
    *_, (last, answer) = scores.items()
    cut: dict[str, Run] = {}
    if budget is not None:
        measure_values(whole_measure, answer._known_lists(), chosen)  # An error if it cannot be computed.
        runs[BUDGET] = cut[BUDGET] = _within(Run.of(runs[last]), budget, chosen)
        scores[BUDGET] = scores_of(align(judged, runs[BUDGET], chosen.ordering, BUDGET), {key: parsed}, dialect, chosen)

    def union(names: Sequence[str]) -> Alignment:
        """The lists of several stages joined: every document once."""
        if len(names) == 1:
            return lists[names[0]]
        together = joined([Run.of(runs[name]) for name in names])
        return chosen.lists(align(judged, together, chosen.ordering).alignment)

    def ceiling(a: Alignment) -> Floats:
        return measure_values(parsed, ideal_order(a, parsed), chosen)

    lists = {name: stage_scores._known_lists() for name, stage_scores in scores.items()}
    states = [union(live) for live in steps.values()]
    unknown = np.full(len(judged.judged.query_ids), np.nan)
    values = [scores[step].values(key) if step in scores else unknown for step in steps]
    # The list itself may be better than an order that is only close to ideal (`_turns`).
    ceilings = np.fmax([ceiling(state) for state in states], values)
    best = np.maximum(ceiling(relevant_lists(states[0], level_of(parsed))), ceilings.max(axis=0))
    in_parallel = next(iter(steps.values()))
    first = in_parallel if len(in_parallel) > 1 else ()
    others = {name: ceiling(union([other for other in first if other != name])) for name in first}
    kept = ~np.isnan(np.vstack([best, ceilings, values[-1]])).any(axis=0)
    if not kept.any():
        how = "`steelyard evaluate` gives those of each list"
        raise InputError(f"no query has a value of {key} in every stage; {how}.")
    return Stages(
        measure=whole_measure,
        steps=tuple(steps),
        queries=[query for query, keep in zip(judged.judged.query_ids, kept.tolist(), strict=True) if keep],
        best=best[kept],
        ceilings=ceilings[:, kept],
        values=np.array(values)[:, kept],
        **_of_targets(judged, parsed, chosen, list(steps), reads, states, lists),
        own={
            name: (float(ceiling(lists[name])[kept].mean()), float((ceilings[0] - others[name])[kept].mean()))
            for name in first
        },
        sliced=None if by is None else (by, slice_values(queries, qrels, by, judged, chosen.rel)),
        notes=[*read, *(note for note in answer.notes if note.severity != "info")],
        alpha=alpha,
        unit="target" if judged.has_targets else "relevant document",
        lists=cut,
        reads=reads,
        calls=calls_table(calls, judged, level_of(parsed, chosen.rel)) if calls else None,
    )


def calls_of(stage: Any) -> list[Any] | None:
    """The runs of the calls of a stage, given as {"calls": [run, run]}; None if it has none."""
    calls = stage.get(CALLS) if isinstance(stage, Mapping) and set(stage) <= {CALLS, LIST} else None
    if not isinstance(calls, Sequence) or not calls or any(isinstance(call, str) for call in calls):
        return None
    return list(calls)


def joined(runs: Sequence[Run]) -> Run:
    """The lists of several runs one after the other, every document once."""
    tables = [run.table.select("query_id", "doc_id") for run in runs]
    table = pl.concat(tables).unique(maintain_order=True).with_columns(score=pl.lit(None, pl.Float64))
    return Run.from_table(table, ordered=True)


def calls_table(calls: Mapping[str, Sequence[Run]], judged: Qrels, level: float | None) -> pl.DataFrame:
    """One row per stage and call, which `queries` made. recall: the mean share of the relevant documents that the calls
    so far returned; added: by this call. nothing_new, no_relevant: queries without a new or a new relevant one."""
    grade = pl.col("grade")
    graded = judged.frame.drop_nulls("doc_id").filter(grade > 0 if level is None else grade >= level)
    relevant = graded.select("query_id", "doc_id").unique()
    sizes = relevant.group_by("query_id").len("relevant")
    rows: list[tuple[Any, ...]] = []
    for stage, runs in calls.items():
        tables = (run.table.select("query_id", "doc_id", call=pl.lit(n)).unique() for n, run in enumerate(runs, 1))
        first = pl.concat(tables).group_by("query_id", "doc_id").agg(pl.col("call").min())
        hits = first.join(relevant, on=["query_id", "doc_id"]).group_by("query_id", "call").len("found")
        shares = hits.join(sizes, on="query_id").with_columns(share=pl.col("found") / pl.col("relevant"))
        recall = 0.0
        for number, run in enumerate(runs, start=1):
            new, useful, its = (frame.filter(pl.col("call") == number) for frame in (first, hits, shares))
            queries = set(run.queries)
            added = math.fsum(its["share"]) / max(1, sizes.height)
            recall += added
            useless = len(queries - set(new["query_id"])), len(queries - set(useful["query_id"]))
            rows.append((stage, number, len(queries), recall, added, *useless))
    schema: dict[str, Any] = {"stage": str, "call": int, "queries": int, "recall": float, "added": float}
    return pl.DataFrame(rows, schema=schema | {"nothing_new": int, "no_relevant": int}, orient="row")


def _is_result(source: Any) -> bool:
    """Whether a source is the result of a bench, or its folder."""
    if isinstance(source, (str, Path)):
        return Path(source).name == "result.json" or (Path(source) / "result.json").is_file()
    folder = getattr(source, "folder", getattr(source, "path", None))
    return isinstance(folder, Path) and not isinstance(source, (Mapping, Qrels))


def check_splits(key: str, measure: Measure) -> None:
    """Raise if a measure cannot be split over stages."""
    if not averaged(measure) or measure.definition.better != "more":
        raise MeasureError(f"{key} cannot be split over stages: it is not a mean of which more is better.")
    if measure.definition.family == "spans" or measure.parameters.get("near", False) is not False:
        raise MeasureError(f"{key} cannot be split over stages: its best order depends on the texts of documents.")
    if measure.name == "ARR":
        raise MeasureError(f"{key} cannot be split over stages: another relevant document lowers it.")


def stage_inputs(names: tuple[str, ...], inputs: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """What each stage reads; `inputs` as in `stages`. An error if they are no pipeline."""
    if not names:
        raise InputError('no stage is given; expected {"retrieve": run, "rerank": run}.')
    for name in names:
        text_value("the name of a stage", name)
    if ORDERING in names:
        raise InputError(f"{ORDERING!r} cannot be the name of a stage: it is the loss of the last list's order.")
    named = {name for read in inputs.values() for name in read}
    if unknown := [name for name in [*inputs, *named] if name not in names]:
        raise InputError(f"inputs: there is no stage {unknown[0]!r}.{did_you_mean(unknown[0], names)}")
    reads: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        alone = place == 0 or names[place - 1] in named
        reads[name] = tuple(inputs[name]) if name in inputs else () if alone else (names[place - 1],)
        if later := [other for other in reads[name] if other not in names[:place]]:
            raise InputError(f"inputs: {name!r} reads {later[0]!r}, which is not before it.")
    read = {other for others in reads.values() for other in others}
    if unread := [name for name in names[:-1] if name not in read]:
        raise InputError(
            f"no stage reads {unread[0]!r}, and only the last stage may be unread; say which one does, as in "
            f"inputs={{{names[-1]!r}: [{unread[0]!r}, ...]}} (--inputs {names[-1]}={unread[0]},...)."
        )
    return reads


def steps_of(reads: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The steps of a pipeline, each with the stages whose lists are in use after it; `reads`: what each stage reads."""
    live = tuple(name for name, read in reads.items() if not read)
    steps = {" + ".join(live): live}
    if taken := [name for name in reads if name in steps and len(live) > 1]:
        raise InputError(f"{taken[0]!r} is the step that joins the first stages; give your stage another name.")
    later = [name for name, read in reads.items() if read]
    for place, done in enumerate(later, start=1):
        needed = {other for name in later[place:] for other in reads[name]}
        steps[done] = live = (*(name for name in live if name in needed), done)
    return steps


def ideal_order(a: Alignment, measure: Measure) -> Alignment:
    """The same lists in ideal order: by grade, or by `_turns` for targets; then unjudged documents, then repeats."""
    # nDCG(per=target) sums the gains of documents; its targets are in the ideal list.
    by_targets = is_over_targets(measure) and measure.definition.family != "graded"
    turn = _turns(a, measure) if by_targets else np.zeros(len(a.query))
    order = np.lexsort((-a.grade, turn, a.query))
    query = a.query[order]
    rank = np.arange(len(query)) - a.hit_starts[query] + 1
    repeated = np.sort(a.repeats.query) if a.repeats.held else a.query[:0]
    last = np.arange(len(repeated)) - starts_of(repeated, a.size)[repeated + 1]
    return replace(
        a,
        query=query,
        rank=rank,
        grade=a.grade[order],
        doc=a.doc[order],
        tie_first=rank,
        tie_size=np.ones(len(rank), dtype=np.int64),
        repeats=Repeats(repeated, a.retrieved[repeated] + last + 1),
        near_repeats=None,
        tokens_through=None,
        ranges=None,
        seconds=None,
    )


def _turns(a: Alignment, measure: Measure) -> Floats:
    """When each hit is taken, the first at 0, if each next one has the most targets that are not found yet.

    A target that was found n times counts 0.5^n; for AP, with R documents, (n + 1) / R. With one target per document,
    the first documents of all targets are taken at 0, the second ones at 1, and so on.
    """
    hit, target, grade = a.hit_targets
    level, of_precision = level_of(measure), measure.name in ("AP", "AP_IA")
    sizes = np.bincount(a.targets.target[a.targets.grade >= (level or 0)], minlength=len(a.targets.name))
    first_worth = 1 / np.maximum(sizes, 1) if of_precision else np.ones(len(sizes))
    chosen = grade > 0 if level is None else grade >= level
    hit, target, grade = hit[chosen], target[chosen], grade[chosen]
    turns = np.full(len(a.query), np.inf)
    crowded = np.full(a.size, of_precision)
    crowded[a.query[hit[np.bincount(hit, minlength=len(turns))[hit] > 1]]] = True
    apart = np.flatnonzero(~crowded[a.query[hit]])
    apart = apart[np.lexsort((-grade[apart], target[apart]))]
    entry, new = np.arange(len(apart)), np.diff(target[apart], prepend=-1) != 0
    turns[hit[apart]] = entry - np.maximum.accumulate(np.where(new, entry, 0))
    satisfied: dict[int, dict[int, list[int]]] = {}
    for one, its in zip(hit.tolist(), target.tolist(), strict=True):
        if crowded[a.query[one]]:
            satisfied.setdefault(int(a.query[one]), {}).setdefault(one, []).append(its)
    for documents in satisfied.values():
        worth = {its: first_worth[its] for targets in documents.values() for its in targets}
        for turn in range(len(documents)):
            best = max(documents, key=lambda one: (sum(worth[its] for its in documents[one]), a.grade[one]))
            turns[best] = turn
            for its in documents.pop(best):
                worth[its] = worth[its] + first_worth[its] if of_precision else worth[its] / 2
    return turns


def relevant_lists(a: Alignment, level: float | None) -> Alignment:
    number = np.flatnonzero(a.judged.grade > 0 if level is None else a.judged.grade >= level)
    query = a.judged.query[number]
    return replace(
        a,
        retrieved=np.bincount(query, minlength=a.size),
        answered=np.ones(a.size, dtype=bool),
        query=query,
        rank=np.arange(len(query)),
        grade=a.judged.grade[number],
        doc=number,
        repeats=Repeats(query[:0], query[:0]),
    )


def _within(run: Run, budget: int, options: Options) -> Run:
    """The first documents of every list that together fit into a budget of tokens."""
    rows = ranked_rows(run.table, run.ordered, options.ordering)
    counts = token_counts(rows["doc_id"], run.tokens)
    rows = rows if counts is None else rows.with_columns(counts)
    kept = rows.filter(pl.col("tokens").cum_sum().over("query_id") <= budget)
    return Run.from_table(kept.select("query_id", "doc_id", score=pl.lit(None, pl.Float64)), ordered=True)


def _of_targets(
    judged: Qrels,
    measure: Measure,
    options: Options,
    steps: Sequence[str],
    reads: Mapping[str, Sequence[str]],
    states: Sequence[Alignment],
    lists: Mapping[str, Alignment],
) -> dict[str, Any]:
    """What happens to targets, as fields of `StagesData`: the best fate of the documents of each."""
    targets, level = judged.targets, level_of(measure, options.rel)
    pairs = np.flatnonzero(targets.grade > 0 if level is None else targets.grade >= level)
    doc, (kept, target) = targets.doc[pairs], np.unique(targets.target[pairs], return_inverse=True)
    relevant, query = np.unique(doc), targets.query[kept]

    def best_of(take: np.ufunc, values: Any, otherwise: float) -> Any:
        best = np.full(len(kept), otherwise, dtype=values.dtype)
        take.at(best, target, values[doc])
        return best

    by_rank = measure.cutoff is not None and measure.definition.cutoff_kind == "rank"
    k = measure.cutoff if by_rank else np.finfo(np.float64).max  # Documents that are not in a list have rank infinity.
    ranks = {name: np.full(len(a.judged.query), np.inf) for name, a in lists.items()}
    for name, a in lists.items():
        ranks[name][a.doc] = a.rank
    fate, added = np.zeros(len(judged.judged.doc_ids), dtype=np.int64), []
    for number, state in enumerate(states, start=1):
        added.append(int(np.isin(state.doc[fate[state.doc] == 0], relevant).sum()) if number > 1 else None)
        fate[state.doc] = number
    fate[ranks[steps[-1]] <= k] = len(states) + 1
    fates = best_of(np.maximum, fate, 0)
    names = [NEVER, *(f"lost in {step}" for step in steps[1:]), BELOW, DELIVERED]
    moves: list[tuple[int, int] | None] = [None]
    below: list[int | None] = [None]
    for number, step in enumerate(steps[1:], start=1):
        before = np.min([ranks[name] for name in reads[step]], axis=0)
        was, now = before[relevant] <= k, ranks[step][relevant] <= k
        moves.append((int(np.sum(now & ~was)), int(np.sum(was & ~now))))
        first = best_of(np.minimum, before, np.inf)
        below.append(int(np.sum((fates == number) & (first > lists[step].retrieved[query]))))
    parts = {"query_id": (judged.judged.query_ids, query), "target": (targets.name, kept), "fate": (names, fates)}
    columns = {name: pl.Series([ids[at] for at in of.tolist()], dtype=pl.String) for name, (ids, of) in parts.items()}
    for name, doc_ranks in ranks.items():
        best_ranks = best_of(np.minimum, doc_ranks, np.inf).tolist()
        columns[f"rank {name}"] = pl.Series([None if r == np.inf else int(r) for r in best_ranks], dtype=pl.Int64)
    counts = dict(zip(names, np.bincount(fates, minlength=len(names)).tolist(), strict=True))
    of_steps = {"moves": moves, "added": added, "below_depth": below}
    return {"fates": counts, "target_fates": pl.DataFrame(columns), **of_steps}
