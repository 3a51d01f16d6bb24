"""What is wrong with qrels and runs: judgments that no list can meet, ids that differ, lists that are broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, compress, islice
from typing import Any

import numpy as np

from steelyard.alignment.alignment import align
from steelyard.comparison.stages import ideal_order
from steelyard.coverage import level_of, separable, unknown_documents_note
from steelyard.evaluation import measure_values
from steelyard.lazy import polars as pl
from steelyard.measures.compute import averaged
from steelyard.measures.grammar import Measure, with_rel
from steelyard.notes import Severity
from steelyard.quality.effects import Board, CheckFinding, examples, mean_of
from steelyard.run import Run
from steelyard.statistics import adjust, power_analysis
from steelyard.statistics.intervals import welch
from steelyard.wording import counted, listed

MOST_PAIRS = 300  # Pairs of runs that the smallest difference is computed from.
ID_SAMPLE = 50  # Ids that are compared to find a prefix or a suffix.

SATURATED, RANDOM_SHARE = 0.98, 0.5
"""Shares of the ceiling: a measure cannot discriminate if all runs are above the first, or random lists the second."""


def qrels_findings(board: Board) -> Iterator[CheckFinding]:
    """Relevant documents that are not in the corpus, queries without one, grades that the measures do not use."""
    qrels, rows, corpus = board.qrels, board.rows, board.dataset.corpus
    relevant = rows.filter(pl.col("grade") > 0)
    if len(corpus):
        absent = [doc for doc in relevant["doc_id"].unique().to_list() if doc not in corpus]
        lost = relevant.filter(pl.col("doc_id").is_in(absent)).select("query_id", "doc_id").unique(maintain_order=True)
        if lost.height:
            text = (
                f"{counted(lost.height, 'relevant document is', 'relevant documents are')} not in the corpus, so no "
                "retriever can find them. Add the documents, or remove the judgments. Effect: without these judgments."
            )
            shown = examples(map(": ".join, lost.iter_rows()))
            yield CheckFinding("relevant-not-in-corpus", "error", lost.height, text, shown, board.effect_without(lost))
    if unasked := _not_asked(board):
        text = (
            f"{counted(len(unasked), 'judged query is', 'judged queries are')} not among the queries, so no retriever "
            "is asked. Add the queries, or remove their judgments. Effect: without them."
        )
        effect = board.without(set(unasked))
        yield CheckFinding("judged-query-not-asked", "error", len(unasked), text, examples(unasked), effect)
    yield from _no_relevant_document(board)
    grades = qrels.grades
    faint = int(np.sum((grades > 0) & (grades < 1)))
    binary = [key for key, m in board.measures.items() if dict(m.parameters).get("rel") == 1]
    if faint and binary:
        lowest = float(grades[grades > 0].min())
        grade = pl.col("grade")
        scaled = rows.with_columns(grade=pl.when(grade > 0).then(grade / lowest).otherwise(grade))
        text = (
            f"{counted(faint, 'judgment has a grade', 'judgments have grades')} between 0 and 1, which is not relevant "
            f"to {listed(binary, 4)}. Use rel={lowest:g}, or whole grades. Effect: grades divided by {lowest:g}."
        )
        shown = examples(f"{query}: {doc} {grade:g}" for query, doc, grade, _ in rows.iter_rows() if 0 < grade < 1)
        yield CheckFinding("grades-below-1", "warning", faint, text, shown, board.effect(board.fixed_qrels(scaled)))
    yield from _relevance_level(board)
    distractors = set(rows.filter(pl.col("grade") < 0).select("query_id", "doc_id").iter_rows())
    # A reader of datasets keeps only the relevant one of two such judgments, and reports the pair.
    distractors.update(*(found.items for found in board.dataset.findings if found.kind == "relevant-distractor"))
    pairs = relevant.select("query_id", "doc_id").unique(maintain_order=True)
    both = pairs.filter(pl.Series([pair in distractors for pair in pairs.iter_rows()], dtype=pl.Boolean))
    if both.height:
        text = (
            f"{counted(both.height, 'document is', 'documents are')} relevant and a distractor for the same query. "
            "Keep one of the two judgments. Effect: without both."
        )
        shown = examples(map(": ".join, both.iter_rows()))
        yield CheckFinding("relevant-distractor", "error", both.height, text, shown, board.effect_without(both))


def _not_asked(board: Board) -> list[str]:
    """The judged queries that the dataset does not have, if it has queries."""
    asked = board.dataset.queries
    return [query for query in board.qrels.queries if query not in asked] if len(asked) else []


def _no_relevant_document(board: Board) -> Iterator[CheckFinding]:
    """Queries without a grade above 0; and those without a grade that counts as relevant for some of the measures."""
    qrels, reported = board.qrels, 0
    levels: dict[float, dict[str, Measure]] = {0.0: {**board.measures}}
    for key, measure in board.measures.items():
        if measure.definition.needs_relevant:
            levels.setdefault(level_of(measure) or 0.0, {})[key] = measure
    for level, measures in sorted(levels.items()):
        answerable = set(qrels.doc_query[(qrels.grades > 0) & (qrels.grades >= level)].tolist())
        without = [query for place, query in enumerate(qrels.queries) if place not in answerable]
        if len(without) > reported:
            what, where = "relevant document", ""
            if level:
                what, where = f"document with grade {level:g} or above", f" on {listed([*measures], 4)}"
            text = (
                f"{counted(len(without), 'query has', 'queries have')} no {what} and can only score 0{where}. Judge "
                "them, or leave them out (no_relevant=skip). Effect: without them."
            )
            severity: Severity = "warning" if len(without) < len(qrels.queries) else "error"
            effect = replace(board, measures=measures).without(set(without))
            yield CheckFinding("no-relevant-document", severity, len(without), text, examples(without), effect)
            reported = len(without)


def _relevance_level(board: Board) -> Iterator[CheckFinding]:
    """Binary measures that rank the runs differently if relevance starts at grade 2, on a scale that nobody stated."""
    if not board.runs or board.qrels.relevant_from is not None or not np.any(board.qrels.grades > 1):
        return
    for key, measure in board.measures.items():
        stricter = with_rel(measure, 2.0)
        if stricter == measure:
            continue
        own, other = (replace(board, measures={key: variant}) for variant in (measure, stricter))
        effect = own.compared("fixed", own.means, other.means)
        if effect is not None and (pairs := effect["reordered"]):
            text = (
                f"{key} ranks {counted(pairs, 'pair')} of runs differently if grade 1 is not relevant. State which "
                "grade answers a question (rel). Effect: rel=2."
            )
            yield CheckFinding("relevance-level", "warning", pairs, text, (key,), effect)


def ceilings(board: Board) -> dict[str, float]:
    """The best mean that any ranking of the corpus can reach, by measure."""
    a, options = align(board.qrels, board.perfect, board.options.ordering).alignment, board.options
    return {key: mean_of(measure_values(m, ideal_order(a, m), options)) for key, m in board.measures.items()}


def smallest_differences(board: Board) -> dict[str, float]:
    """By measure, the difference of two means that these queries show with power 0.8: the median over pairs of runs."""
    differences = {}
    for key, measure in board.measures.items():
        values = replace(board, measures={key: measure}).now.values() if board.runs and averaged(measure) else ()
        sizes = [power_analysis(one - other).smallest for one, other in islice(combinations(values, 2), MOST_PAIRS)]
        if sizes := [size for size in sizes if 0 < size < np.inf]:
            differences[key] = float(np.median(sizes))
    return differences


def measure_findings(board: Board, best: Mapping[str, float], named: bool = True) -> Iterator[CheckFinding]:
    """Measures that cannot discriminate here: runs or random lists are near the ceiling. named: the user chose them."""
    corpus = len(board.dataset.corpus)
    for key, measure in board.measures.items():
        if measure.definition.better != "more" or not averaged(measure) or not best[key] > 0:
            continue
        own = replace(board, measures={key: measure})
        means = own.means if board.runs else {}
        if len(means) > 1 and min(means.values()) >= SATURATED * best[key]:
            text = (
                f"{key}: all {len(means)} runs reach at least {SATURATED:.0%} of the best value, {best[key]:.4f}. "
                "Use a smaller cutoff or harder queries. Effect: the best value."
            )
            effect = own.compared("fixed", means, dict.fromkeys(means, best[key]))
            yield CheckFinding("measure-saturated", "warning", len(means), text, (key,), effect)
        if corpus and (chance := _random_mean(board, measure, corpus)) >= RANDOM_SHARE * best[key]:
            text = (
                f"{key}: lists in random order reach {chance:.4f} of at most {best[key]:.4f}. The corpus of "
                f"{counted(corpus, 'document')} is too small for this cutoff."
            )
            yield CheckFinding("random-too-good", "warning" if named else "info", 1, text, (key,))


def _random_mean(board: Board, measure: Any, documents: int) -> float:
    """The mean of random orders of the whole corpus."""
    generator = np.random.default_rng(0)
    a = align(board.qrels, board.perfect, board.options.ordering).alignment
    sizes = np.bincount(a.query, minlength=a.size).tolist()
    documents, means = max([documents, *sizes]), []
    for _ in range(max(5, 1000 // a.size)):
        rank = np.concatenate([generator.choice(documents, size, replace=False) for size in sizes]) + 1
        order = np.lexsort((rank, a.query))
        drawn = replace(ideal_order(a, measure), retrieved=np.full(a.size, documents), query=a.query[order])
        drawn = replace(drawn, rank=rank[order], grade=a.grade[order], doc=a.doc[order], tie_first=rank[order])
        means.append(mean_of(measure_values(measure, drawn, board.options)))
    return float(np.mean(means))


def missing_judgments(board: Board) -> Iterator[CheckFinding]:
    """Unjudged documents that most runs rank above every judged relevant one."""
    if len(board.runs) < 3:
        return
    judged = board.rows.select("query_id", "doc_id", "grade").unique(["query_id", "doc_id"])
    queries = judged.filter(pl.col("grade") > 0)["query_id"].unique()
    above = []
    for run in board.runs.values():
        ranked = run.frame.select("query_id", "doc_id", "rank").filter(pl.col("query_id").is_in(queries.to_list()))
        ranked = ranked.join(judged, on=["query_id", "doc_id"], how="left")
        first = pl.col("rank").filter(pl.col("grade") > 0).min().over("query_id").fill_null(11)
        high = (pl.col("rank") < first) & (pl.col("rank") <= 10)
        above.append(ranked.filter(pl.col("grade").is_null() & high).select("query_id", "doc_id").unique())
    votes = pl.concat(above).group_by("query_id", "doc_id").len().filter(pl.col("len") > len(board.runs) / 2)
    votes = votes.sort(["len", "query_id", "doc_id"], descending=[True, False, False])
    if not votes.height:
        return
    lowest = board.qrels.relevant_from or float(board.qrels.grades[board.qrels.grades > 0].min())
    rows = [*board.rows.iter_rows(), *((query, doc, lowest, None) for query, doc, _ in votes.iter_rows())]
    text = (
        f"{counted(votes.height, 'unjudged document is', 'unjudged documents are')} ranked above every relevant one by "
        f"more than half of the {len(board.runs)} runs. Judge them (steelyard pool). Effect: each with grade "
        f"{lowest:g}."
    )
    shown = examples(f"{query}: {doc} ({count} runs)" for query, doc, count in votes.iter_rows())
    effect = board.effect(board.fixed_qrels(pl.DataFrame(rows, schema=board.rows.schema, orient="row")))
    yield CheckFinding("likely-missing-judgment", "warning", votes.height, text, shown, effect)


# Runs


def run_findings(board: Board) -> Iterator[CheckFinding]:
    """Empty answers, constant scores, lists that were cut, ids that differ, equal runs, and tuning on these queries."""
    by_code: dict[str, dict[str, CheckFinding]] = {}
    for name, run in board.runs.items():
        for finding in (*_lists(board, name, run), *_ids(board, name, run)):
            own = replace(finding, text=f"{name}: {finding.text}", effect=_only(finding.effect, name))
            by_code.setdefault(finding.code, {})[name] = own
    yield from map(_of_runs, by_code.values())
    prints: dict[str, list[str]] = {}
    for name, run in board.runs.items():
        ranked = run.frame.select("query_id", "doc_id", "rank").sort("query_id", "rank")
        prints.setdefault(str(ranked.hash_rows().implode().hash()[0]), []).append(name)
    for same in prints.values():
        if len(same) > 1:
            values = {name: {"now": mean_of(board.now[name])} for name in same}
            effect = {"measure": board.key, "runs": values, "largest": 0.0, "reordered": 0}
            text = f"{listed(same)} have the same lists. Keep one, or check that each file is the right one."
            yield CheckFinding("same-run", "warning", len(same), text, tuple(same), effect)
    yield from _tuned(board)


def _of_runs(by_run: Mapping[str, CheckFinding]) -> CheckFinding:
    """One finding for all runs with this problem: the text is that of the run with the largest effect."""
    worst = max(by_run.values(), key=lambda finding: (finding.largest, finding.count))
    if len(by_run) == 1:
        return worst
    effects = [finding.effect for finding in by_run.values() if finding.effect is not None]
    values = {name: row for effect in effects for name, row in effect["runs"].items()}
    return replace(
        worst,
        count=sum(finding.count for finding in by_run.values()),
        text=f"{len(by_run)} runs have this problem; the largest effect is on {worst.text}",
        examples=examples(f"{name}: {finding.count:,}" for name, finding in by_run.items()),
        effect={**effects[0], "runs": values, "largest": worst.largest} if effects else None,
    )


def _lists(board: Board, name: str, run: Run) -> Iterator[CheckFinding]:
    """Lists that are empty, were cut, or have one score."""
    sizes = dict(run.frame.group_by("query_id").len().iter_rows())
    unasked = set(_not_asked(board))
    queries = [query for query in board.qrels.queries if query not in unasked]
    if missing := [query for query in queries if not sizes.get(query)]:
        what = counted(len(missing), "query has", "queries have")
        text = f"{what} no documents. Run them again. Effect: without them."
        severity: Severity = "error" if len(missing) == len(queries) else "warning"
        effect = board.without(set(missing))
        yield CheckFinding("empty-answer", severity, len(missing), text, examples(missing), effect)
    lengths = np.array([sizes.get(query, 0) for query in queries])
    usual, often = Counter(lengths[lengths > 0].tolist()).most_common(1)[0] if lengths.any() else (0, 0)
    short = (lengths > 0) & (lengths < usual / 2)
    if usual >= 10 and often >= 0.8 * np.sum(lengths > 0) and short.any():
        few = dict.fromkeys(compress(queries, short.tolist()))
        what = f"{counted(len(few), 'list has', 'lists have')} fewer than half of the usual {usual:,} documents"
        text = f"{what}. Check that they were not cut. Effect: on these queries."
        effect = board.on_queries(np.array([query in few for query in board.qrels.queries], dtype=bool))
        yield CheckFinding("list-cut-short", "warning", len(few), text, examples(few), effect)
    if run.ordered:
        return
    by_query = run.frame.group_by("query_id", maintain_order=True)
    scored = by_query.agg(pl.col("score").n_unique().alias("scores"), pl.len())
    constant = scored.filter((pl.col("scores") == 1) & (pl.col("len") > 1))["query_id"].to_list()
    if constant and len(constant) >= 0.1 * len(sizes):
        text = (
            f"{counted(len(constant), 'list has', 'lists have')} one score for all documents, so their ids "
            "decide the order. Write ranks or the real scores. Effect: ids in ascending instead of descending order."
        )
        turned = [False, True, False]
        effect = board.effect_on(name, lambda rows: rows.sort("query_id", "score", "doc_id", descending=turned))
        yield CheckFinding("constant-scores", "warning", len(constant), text, examples(constant), effect)


def _id_changes(unknown: Sequence[str], known_ids: set[str]) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Differences between ids, and what turns an unknown id into a known one: case, white space, prefix, suffix."""
    folded: dict[str, str] = {}
    for doc in known_ids:
        folded[doc.strip().lower()] = "" if doc.strip().lower() in folded else doc
    yield "upper and lower case or white space", lambda one: folded.get(one.strip().lower(), "")
    sample, unknown_ids = unknown[:ID_SAMPLE], set(unknown)
    for many, others, removed in ((sample, known_ids, True), (sorted(known_ids)[:ID_SAMPLE], unknown_ids, False)):
        cuts = [(one[:cut], one[cut:]) for one in many for cut in range(1, len(one)) if separable(one, cut)]
        starts = Counter(start for start, end in cuts if end in others)
        ends = Counter(end for start, end in cuts if start in others)
        for part, _ in starts.most_common(1):
            yield f"the prefix {part!r}", partial(_changed_id, removed, part, "")
        for part, _ in ends.most_common(1):
            yield f"the suffix {part!r}", partial(_changed_id, removed, "", part)


def _changed_id(removed: bool, start: str, end: str, one: str) -> str:
    return one.removeprefix(start).removesuffix(end) if removed else f"{start}{one}{end}"


def _ids(board: Board, name: str, run: Run) -> Iterator[CheckFinding]:
    """Documents of a run that the corpus (or, without one, the qrels) has under an id that differs only in form."""
    corpus = board.dataset.corpus
    known_ids = set(corpus) if len(corpus) else set(board.qrels.judged.doc_ids)
    retrieved = run.frame["doc_id"].unique(maintain_order=True).to_list()
    unknown = [doc for doc in retrieved if doc not in known_ids]
    if not unknown:
        return
    # Without a corpus the known ids are those that are judged, usually a small part of the run.
    stated = unknown_documents_note(unknown, sorted(known_ids)) if not len(corpus) and unknown == retrieved else None
    what, mapping = "", dict[str, str]()
    for difference, change in _id_changes(unknown, known_ids):
        candidate = {doc: other for doc in unknown if (other := change(doc)) in known_ids}
        if len(candidate) > len(mapping):
            what, mapping = difference, candidate
    if len(corpus) and len(mapping) < len(unknown):
        lost = [doc for doc in unknown if doc not in mapping]
        text = (
            f"{counted(len(lost), 'document is', 'documents are')} not in the corpus. Check that run and "
            "corpus are of one version. Effect: without them."
        )
        effect = board.effect_on(name, lambda rows: rows.filter(~pl.col("doc_id").is_in(lost)))
        yield CheckFinding("retrieved-not-in-corpus", "warning", len(lost), text, examples(lost), effect)
    differ = stated is not None and stated.code == "document-ids-differ"
    if len(mapping) < (1 if differ else max(1, 0.5 * len(unknown))):
        if stated is not None:
            yield CheckFinding("no-judged-document", "error", len(unknown), f"{stated}.", examples(unknown))
        return
    text = (
        f"{counted(len(mapping), 'document id differs', 'document ids differ')} from the known ones by {what}. "
        "Write the ids of the corpus. Effect: with the ids mapped as in the examples."
    )
    shown = examples(f"{doc} -> {other}" for doc, other in mapping.items())
    effect = board.effect_on(name, lambda rows: rows.with_columns(pl.col("doc_id").replace(mapping)))
    yield CheckFinding("ids-differ", "error", len(mapping), text, shown, effect)


def _only(effect: Mapping[str, Any] | None, name: str) -> dict[str, Any] | None:
    if effect is None or name not in effect["runs"]:
        return None
    row = effect["runs"][name]
    return {**effect, "runs": {name: row}, "largest": abs(row.get("fixed", row.get("others")) - row["now"])}


def _tuned(board: Board) -> Iterator[CheckFinding]:
    """Runs that are far better on the queries of a `train` part, compared with the mean of the other runs."""
    columns = board.dataset.queries.columns
    column = next((name for name in ("split", "part", "fold", "set") if name in columns), None)
    if column is None or len(board.runs) < 2:
        return
    train = np.array([str(columns[column].get(query, "")).lower() for query in board.qrels.queries]) == "train"
    if train.sum() < 10 or (~train).sum() < 10:
        return
    gains, p_values = {}, []
    for name, values in board.now.items():
        lead = values - np.mean([other for key, other in board.now.items() if key != name], axis=0)
        gains[name], p, _ = welch(lead[train], lead[~train])
        p_values.append(p)
    for (name, gain), p in zip(gains.items(), adjust(p_values).tolist(), strict=True):
        if gain > 0 and p < 0.01:
            text = (
                f"{name}: its lead over the other runs is {gain:.4f} larger on the {int(train.sum()):,} queries of the "
                "part 'train' than on the rest: it was probably tuned on them. Effect: without the train queries."
            )
            gone = set(compress(board.qrels.queries, train.tolist()))
            yield CheckFinding("tuned-on-train", "warning", int(train.sum()), text, (name,), board.without(gone))
