"""An Agreement in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from steelyard.judging.agreement import Agreement
    from steelyard.report.tables import Table

SAME_RANKING = 0.8
OTHER_RANKING = 0.6
"""tau from which the verdict calls two rankings alike, and below which it calls them different."""


def ranking_verdict(a: str, b: str, row: Mapping[str, Any]) -> str:
    """One sentence on the ranking of the runs and on the absolute scores.

    >>> row = {"tau": 0.9, "tau_low": 0.84, "tau_high": 0.94, "bias": 0.09, "bias_low": 0.07, "bias_high": 0.11}
    >>> print(ranking_verdict("human", "gpt", {**row, "reversed": 0, "significant_a": 40}))
    gpt ranks the runs like human (tau 0.90 [0.84, 0.94]) but its absolute scores are 0.09 too high: do not compare them with human ones.
    """
    tau = row["tau"]
    how = (
        "like" if tau >= SAME_RANKING else "only roughly like" if tau >= OTHER_RANKING else "differently from"
    )
    first = f"{b} ranks the runs {how} {a} (tau {tau:.2f} [{row['tau_low']:.2f}, {row['tau_high']:.2f}])"
    if tau >= SAME_RANKING and row["tau_low"] < OTHER_RANKING:
        first += ", which so few runs and queries do not show reliably,"
    biased = not row["bias_low"] <= 0.0 <= row["bias_high"]
    if biased and abs(row["bias"]) >= 0.005:
        link = "but" if tau >= SAME_RANKING else "and"
        size = f"{abs(row['bias']):.2f} too {'high' if row['bias'] > 0 else 'low'}"
        second = f"{link} its absolute scores are {size}: do not compare them with {a} ones"
    else:
        second = f"and its absolute scores are not significantly different from {a} ones"
    turned = row["reversed"]
    reversed_ = (
        f"; it reverses {turned:,} of the {row['significant_a']:,} significant differences" if turned else ""
    )
    return f"{first} {second}{reversed_}."


def grades_verdict(a: str, b: str, row: Mapping[str, Any]) -> str:
    """One sentence on the grades alone.

    >>> grades_verdict("human", "gpt", {"n": 200, "kappa": 0.5, "kappa_quadratic": 0.7, "bias": -0.25})
    'gpt and human agree with kappa 0.50 (quadratic 0.70) on 200 documents, and gpt grades 0.25 lower on average.'
    """
    if row["n"] == 0:
        return f"{b} and {a} have no graded document in common."
    if row["kappa"] is None or row["kappa"] != row["kappa"]:
        return f"{b} and {a} gave one and the same grade to all {row['n']:,} documents: kappa is undefined."
    lean = f"{abs(row['bias']):.2f} {'higher' if row['bias'] > 0 else 'lower'}"
    level = f"{b} grades {lean}" if abs(row["bias"]) >= 0.005 else "neither grades higher"
    kappa = f"kappa {row['kappa']:.2f} (quadratic {row['kappa_quadratic']:.2f})"
    return f"{b} and {a} agree with {kappa} on {row['n']:,} documents, and {level} on average."


def favour_remark(judge: str, rows: pl.DataFrame, measure: str) -> str:
    """One sentence on whether the bias of a judge differs between runs."""
    import polars as pl

    found = rows.filter(pl.col("p_adjusted") < 0.05).sort("favour")
    if not found.height:
        return f"{judge}: no run has a bias in {measure} significantly different from the mean of all runs."
    low, high = found.row(0, named=True), found.row(-1, named=True)
    ends = dict.fromkeys(f"{row['run']} ({row['favour']:+.2f})" for row in (high, low))
    count = f"{found.height} of {rows.height} runs {'has' if found.height == 1 else 'have'}"
    return f"{judge}: {count} a bias in {measure} significantly different from the mean of all runs: {', '.join(ends)}."


def agreement_tables(found: Agreement) -> list[Table]:
    """What is printed: grades, rankings, the confusion matrices, and the runs that are favoured."""
    made = [_pairs_table(found)]
    if found.systems.height:
        made += [_systems_table(found), _significance_table(found)]
    made += [_confusion_table(found, found.judges[0], b) for b in found.judges[1:]]
    favoured = _favours_table(found)
    return [*made, *([favoured] if favoured else [])]


def _pairs_table(found: Agreement) -> Table:
    from steelyard.report.tables import Table

    columns = ["a", "b", "n", "kappa", "kappa_linear", "kappa_quadratic", "alpha", "ac1", "bias"]
    titles = ["a", "b", "documents", "kappa", "linear", "quadratic", "alpha", "AC1", "bias"]
    note = "alpha is Krippendorff's, ordinal; bias is the mean grade of b minus that of a."
    return Table(titles, found.pairs.select(columns).rows(), title="Agreement of grades", keys=2, note=note)


def _systems_table(found: Agreement) -> Table:
    from steelyard.report.tables import Table

    rows = [
        [
            *(row[name] for name in ("a", "b", "measure")),
            *(_interval_text(row, name) for name in ("tau", "tau_ap", "rbo")),
            _drop_text(row),
            _interval_text(row, "bias", "+.4f"),
        ]
        for row in found.systems.iter_rows(named=True)
    ]
    count, queries = len(found.panel.runs), max(found.systems["queries"].to_list())
    note = (
        f"{count:,} runs; 95% bootstrap intervals over at most {queries:,} queries; tau is tau-b; a is the "
        f"reference of tau_AP; RBO with p = {found.rbo_p:g}; bias is the mean score by b minus that by a."
    )
    titles = ["a", "b", "measure", "tau", "tau_AP", "RBO", "largest drop", "bias"]
    return Table(titles, rows, title="Agreement of the rankings of runs", keys=3, note=note)


def _significance_table(found: Agreement) -> Table:
    from steelyard.report.tables import Table

    names = [
        "a",
        "b",
        "measure",
        "run_pairs",
        "significant_a",
        "significant_b",
        "significant_both",
        "reversed",
    ]
    titles = ["a", "b", "measure", "pairs", "by a", "by b", "by both", "reversed"]
    note = "Paired t test over queries, p < 0.05, not corrected; reversed: a and b prefer different runs."
    rows = found.systems.select(names).rows()
    return Table(titles, rows, title="Pairs of runs with a significant difference", keys=3, note=note)


def _confusion_table(found: Agreement, a: str, b: str) -> Table:
    from steelyard.report.tables import Table

    frame = found.confusion(a, b)
    titles = ["grade", *(name.rpartition("=")[2] for name in frame.columns[1:])]
    return Table(titles, frame.rows(), title=f"Grades by {a} (rows) and {b} (columns)")


def _favours_table(found: Agreement) -> Table | None:
    """The runs whose bias differs significantly from the mean bias, by the judges compared with the first."""
    import polars as pl

    from steelyard.report.tables import Table

    chosen = found.favours.filter((pl.col("a") == found.judges[0]) & (pl.col("p_adjusted") < 0.05))
    if not chosen.height:
        return None
    columns = ["b", "measure", "run", "score_a", "score_b", "bias", "favour", "p_adjusted"]
    rows = chosen.select(columns).sort("b", "measure", "favour", descending=[False, False, True]).rows()
    note = "favour: the bias of the run minus the mean bias of all runs. Holm's correction over the runs."
    title = f"Runs with a bias different from the others, compared with {found.judges[0]}"
    titles = ["judge", *columns[1:3], "score by a", "score by b", "bias", "favour", "p"]
    return Table(titles, rows, title=title, keys=3, note=note)


SIDE, MARGIN = 320, 44
"""Width and height of a drawing and its margin, in pixels."""


def ranking_drawings(found: Agreement) -> list[str]:
    """For every judge compared with the first, and every measure: the runs' scores by both, as SVG.

    A run above the diagonal is scored higher by the judge than by the reference; runs in another order are
    ranked differently.
    """
    reference = found.judges[0]
    made = []
    for judge in found.judges[1:] if len(found.panel.runs) > 1 else ():
        for measure in found.panel.measures:
            one, other, queries = found.scores(reference, judge, measure)
            if len(queries):
                points = zip(
                    found.panel.runs, one.mean(axis=1).tolist(), other.mean(axis=1).tolist(), strict=True
                )
                made.append(_scatter(list(points), f"{measure} by {reference}", f"{measure} by {judge}"))
    return made


def _scatter(points: list[tuple[str, float, float]], across: str, up: str) -> str:
    """Points with names as SVG, on axes of the same scale, with the diagonal."""
    from html import escape

    values = [value for _, *both in points for value in both]
    low, high = min(values), max(values)
    low, width = low - 0.05 * (high - low or 1.0), 1.1 * (high - low or 1.0)
    plot = SIDE - 2 * MARGIN

    def place(x: float, y: float) -> tuple[str, str]:
        return f"{MARGIN + plot * (x - low) / width:.1f}", f"{SIDE - MARGIN - plot * (y - low) / width:.1f}"

    end, middle, edge = SIDE - MARGIN, SIDE / 2, MARGIN - 8
    ticks = [low + width * part for part in (0.1, 0.5, 0.9)]
    labels = "".join(
        f'<text x="{place(tick, low)[0]}" y="{end + 16}" text-anchor="middle">{tick:.2f}</text>'
        f'<text x="{edge}" y="{place(low, tick)[1]}" text-anchor="end" dominant-baseline="middle">{tick:.2f}</text>'
        for tick in ticks
    )
    dots = "".join(
        '<circle cx="{}" cy="{}" r="4" fill="#0072b2" fill-opacity="0.7">'
        "<title>{}: {:.4f}, {:.4f}</title></circle>".format(*place(x, y), escape(run), x, y)
        for run, x, y in points
    )
    return (
        f'<svg viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" height="{SIDE}" role="img" '
        f'aria-label="{escape(up)} and {escape(across)}, one point per run" '
        'font-family="sans-serif" font-size="11" fill="currentColor">'
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{plot}" height="{plot}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.3"/>'
        f'<line x1="{MARGIN}" y1="{end}" x2="{end}" y2="{MARGIN}" stroke="currentColor" stroke-opacity="0.4" '
        'stroke-dasharray="4 4"/>'
        f'{labels}{dots}<text x="{middle}" y="{SIDE - 6}" text-anchor="middle">{escape(across)}</text>'
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{escape(up)}</text>'
        "</svg>"
    )


def _interval_text(row: Mapping[str, Any], name: str, form: str = ".4f") -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if value is None or value != value:
        return ""
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


def _drop_text(row: Mapping[str, Any]) -> str:
    return f"{row['drop']:g} ({row['dropped']})" if row["dropped"] else "0"
