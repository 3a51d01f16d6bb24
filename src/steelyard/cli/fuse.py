"""steelyard fuse: make one run of several, and tune how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from steelyard.cli.arguments import (
    Argument,
    Option,
    QrelsColumns,
    QrelsFormat,
    Rel,
    RunColumns,
    UsageError,
    named,
    read_qrels,
    read_run,
)
from steelyard.cli.output import Format, emit, followed, say, watched, write
from steelyard.fusion.fuse import fuse as fused
from steelyard.fusion.methods import METHODS
from steelyard.fusion.normalise import NORMS
from steelyard.fusion.tune import Tuned
from steelyard.fusion.tune import tune as tuned
from steelyard.io.trec import run_bytes
from steelyard.report.tables import Cell, Table


def fuse(
    runs: Annotated[list[Path], Argument("RUN", "Two or more runs.")],
    method: Annotated[str, Option("How to fuse: one of those above.", "NAME")] = "rrf",
    norm: Annotated[
        str | None, Option("How scores are brought to one scale, as above. Not for methods that read ranks.", "NAME")
    ] = None,
    weights: Annotated[str | None, Option("One weight a run, as in 0.7,0.3.", "W,W")] = None,
    k: Annotated[float | None, Option("rrf: how slowly ranks lose weight (60).", "N")] = None,
    phi: Annotated[float | None, Option("rbc: persistence, from 0 to below 1 (0.8).", "P")] = None,
    sigma: Annotated[float | None, Option("logn-isr: from 0 to 1 (0.01).", "S")] = None,
    depth: Annotated[int | None, Option("Cut every fused list at this depth.", "N")] = None,
    name: Annotated[str | None, Option("The fused run's name.", "NAME")] = None,
    output: Annotated[
        Path | None,
        Option("Write the fused run here; its name chooses the format.", "FILE", names=("--output", "-o")),
    ] = None,
    tune: Annotated[
        Path | None, Option("Choose the parameters on these judgments by cross-validation.", "QRELS")
    ] = None,
    measure: Annotated[
        str, Option("--tune: the measure to tune for.", "MEASURE", names=("--measure", "-m"))
    ] = "nDCG@10",
    grid: Annotated[
        list[str] | None,
        Option("--tune: values to try, as in k=10,20,60, norm=z,sum, weights=simplex or weights=1:1,2:1. Repeat for more.", "NAME=V,V"),
    ] = None,
    folds: Annotated[int, Option("--tune: how many folds.", "N")] = 5,
    seed: Annotated[int, Option("--tune: the same seed deals the same folds.", "N")] = 0,
    rel: Rel = None,
    columns: RunColumns = None,
    qrels_columns: QrelsColumns = None,
    qrels_format: QrelsFormat = None,
    format: Annotated[Format, Option("--tune: how to print its table.")] = Format.table,
) -> None:  # fmt: skip
    """Make one run of several. Without -o the fused run goes to the terminal as TREC lines.

    Examples:

    steelyard fuse bm25.run dense.run --method rrf -o fused.run

    steelyard fuse bm25.run dense.run --method wsum --norm min-max --weights 0.7,0.3 -o fused.parquet

    steelyard fuse bm25.run dense.run --method wsum --tune qrels.trec -m nDCG@10 -o fused.run

    With --tune the score printed is of queries that had no part in choosing their parameters, and so
    are the lists that -o writes: no query is fused with parameters that its own judgments chose.
    """
    run_columns = named(columns, "--columns")
    held = [read_run(path, run_columns, len(runs)) for path in followed(runs, lambda path: path.name)]
    given: dict[str, float] = {
        key: value for key, value in (("k", k), ("phi", phi), ("sigma", sigma)) if value is not None
    }
    if tune is None:
        if grid or qrels_columns or qrels_format:
            option = (
                "--grid says what --tune tries"
                if grid
                else "--qrels-columns and --qrels-format are of the judgments of --tune"
            )
            raise UsageError(f"{option}; give --tune QRELS with it.")
        if format is not Format.table:
            raise UsageError(
                "--format is of the table that --tune prints; a fused run takes the format that -o names: -o fused.json."
            )
        made = fused(held, method, norm, _numbers(weights, ","), name, depth, **given)
    else:
        if given or norm or weights:
            raise UsageError(
                "--tune chooses the parameters; say which to try with --grid, as in --grid k=10,60."
            )
        if depth is not None:
            raise UsageError("--depth does not go with --tune; cut the lists afterwards.")
        truth = read_qrels(tune, qrels_columns, qrels_format)
        with watched() as watch:
            result = tuned(
                truth, held, method, measure, grid=_grid(grid), folds=folds, seed=seed, rel=rel, name=name, progress=watch
            )  # fmt: skip
        made = result.run
        _print_tuned(result, format)
    if tune is None or format is not Format.table:
        for note in made.notes:
            say(f"{note}.")
    if output is not None:
        made.write(output)
        say(f"{made!r} is in {output}.")
    elif tune is None:
        write(run_bytes(made).decode().rstrip("\n"), None)


def _numbers(text: str | None, between: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(between)]
    except ValueError:
        raise UsageError(f"{text!r} is not numbers with {between!r} between them.") from None


def _grid(given: list[str] | None) -> dict[str, Any] | None:
    """What to try: numbers, names of normalisations, or weights of the runs with colons between them."""
    if not given:
        return None
    grid: dict[str, Any] = {}
    for text in given:
        key, _, values = text.partition("=")
        if not values:
            raise UsageError(f"--grid {text!r} names no values; write it as k=10,20,60.")
        if key == "norm":
            grid[key] = values.split(",")
        elif key == "weights":
            grid[key] = values if values == "simplex" else [_numbers(part, ":") for part in values.split(",")]
        else:
            grid[key] = _numbers(values, ",")
    return grid


def _print_tuned(result: Tuned, format: Format) -> None:
    rows: list[list[Cell]] = [
        [f"fold {number}", str(fold.chosen), fold.tuned_on, fold.held_out]
        for number, fold in enumerate(result.folds, 1)
    ]
    rows.append(["all", str(result.final), result.tuned_on, result.held_out])
    if format is Format.table:
        write(str(result), None)
    else:
        emit(Table(["fold", "chosen", "tuned on", "held out"], rows), result.to_dict(), format, None)
        if format is not Format.json:
            say(f"Optimism, tuned on less held out: {result.optimism:.4f}. Report the held-out score.")


fuse.__doc__ = "\n".join(
    [
        fuse.__doc__ or "",
        "    Methods (r: rank, s: normalised score, w: weight, N: lists that have the document):",
        *(f"      {method.name:<10}{method.about}" for method in METHODS.values()),
        "",
        "    Normalisations:",
        *(f"      {norm.name:<10}{norm.about}" for norm in NORMS.values()),
    ]
)
