"""steelyard fuse: fuse several runs into one, and tune the fusion."""

from __future__ import annotations

import textwrap
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

from steelyard.cli import arguments as args
from steelyard.cli.arguments import Argument, Option, UsageError
from steelyard.cli.output import Format, emit, print_message, print_messages, progress_bar, with_progress, write
from steelyard.fusion.fuse import fuse as fuse_runs
from steelyard.fusion.methods import METHODS
from steelyard.fusion.normalise import NORMS
from steelyard.fusion.tune import Tuned
from steelyard.fusion.tune import tune as tune_fusion
from steelyard.io.trec import run_bytes
from steelyard.notes import sentence
from steelyard.report.tables import Cell, Table


def fuse(
    runs: Annotated[list[Path], Argument("RUN", "Two or more runs; - is standard input.")],
    method: Annotated[str, Option("A method, as above.", "NAME")] = "rrf",
    norm: Annotated[
        str | None, Option("A normalisation of scores, as above. Not for methods that use ranks.", "NAME")
    ] = None,
    weights: Annotated[str | None, Option("One weight per run, as in 0.7,0.3.", "W,W")] = None,
    k: Annotated[float | None, Option("rrf: the constant that is added to ranks (60).", "N")] = None,
    phi: Annotated[float | None, Option("rbc: persistence, from 0 to below 1 (0.8).", "P")] = None,
    sigma: Annotated[float | None, Option("logn-isr: from 0 to 1 (0.01).", "S")] = None,
    depth: Annotated[int | None, Option("Cut every fused list at this depth.", "N")] = None,
    name: Annotated[str | None, Option("The name of the fused run.", "NAME")] = None,
    output: Annotated[
        Path | None,
        Option("Write the fused run here; its name selects the format.", "FILE"),
    ] = None,
    tune: Annotated[
        Path | None, Option("Choose the parameters with these qrels, by cross-validation.", "QRELS")
    ] = None,
    measure: Annotated[
        str, Option("--tune: the measure to tune for.", "MEASURE")
    ] = "nDCG@10",
    grid: Annotated[
        list[str] | None,
        Option(
            "--tune: values to try, as in k=10,20,60, norm=z,sum, weights=simplex or weights=1:1,2:1. Repeat for more.",
            "NAME=V,V",
        ),
    ] = None,
    folds: Annotated[int, Option("--tune: number of folds.", "N")] = 5,
    seed: Annotated[int, Option("--tune: seed of the folds.", "N")] = 0,
    rel: args.Rel = None,
    columns: args.RunColumns = None,
    qrels_columns: args.QrelsColumns = None,
    qrels_format: args.QrelsFormat = None,
    format: Annotated[Format, Option("--tune: how to print the table.")] = Format.table,
) -> None:  # fmt: skip
    """Fuse several runs into one. Without -o the fused run is printed as TREC lines.

    Examples:

      steelyard fuse bm25.run dense.run --method rrf -o fused.run

      steelyard fuse bm25.run dense.run --method wsum --norm min-max \\
          --weights 0.7,0.3 -o fused.parquet

      steelyard fuse bm25.run dense.run --method wsum --tune qrels.trec \\
          -m nDCG@10 -o fused.run

    With --tune, parameters are chosen by cross-validation: the score that is
    printed, and the lists that -o writes, are of queries whose judgments were not
    used to choose their parameters.
    """
    run_columns = args.column_names(columns, "--columns")
    paths = list(map(args.input_path, runs))
    read = [args.read_run(path, run_columns, len(runs)) for path in with_progress(paths, lambda path: path.name)]
    parameters: dict[str, float] = {
        key: value for key, value in (("k", k), ("phi", phi), ("sigma", sigma)) if value is not None
    }
    if tune is None:
        if grid or qrels_columns or qrels_format:
            option = "--grid is" if grid else "--qrels-columns and --qrels-format are"
            raise UsageError(f"{option} for --tune; add --tune QRELS.")
        if format is not Format.table:
            raise UsageError(
                "--format is for the table that --tune prints; the format of a fused run is that of the name in -o "
                "fused.json."
            )
        fused = fuse_runs(read, method, norm, _numbers(weights, ","), name, depth, **parameters)
    else:
        if parameters or norm or weights:
            raise UsageError("--tune chooses the parameters; use --grid for the values to try, as in --grid k=10,60.")
        if depth is not None:
            raise UsageError("--depth cannot be used with --tune; cut the lists afterwards.")
        judged = args.read_qrels(tune, qrels_columns, qrels_format)
        with progress_bar() as progress:
            result = tune_fusion(
                judged, read, method, measure,
                grid=_grid(grid), folds=folds, seed=seed, rel=rel, name=name, progress=progress,
            )  # fmt: skip
        fused = result.run
        _print_tuned(result, format)
    if tune is None or format is not Format.table:
        print_messages(map(sentence, fused.notes))
    if output is not None:
        fused.write(output)
        print_message(f"{fused!r} is in {output}.")
    elif tune is None:
        write(run_bytes(fused).decode().rstrip("\n"), None)


def _numbers(text: str | None, between: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(between)]
    except ValueError:
        raise UsageError(f"{text!r} is wrong; expected numbers separated by {between!r}.") from None


def _grid(texts: list[str] | None) -> dict[str, Any] | None:
    """The values to try: numbers, names of normalisations, or weights of the runs separated by colons."""
    if not texts:
        return None
    grid: dict[str, Any] = {}
    for text in texts:
        key, _, values = text.partition("=")
        if not values:
            raise UsageError(f"--grid {text!r} has no values; expected a name and values, as in k=10,20,60.")
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
            print_message(f"Optimism (tuned on minus held out): {result.optimism:.4f}. Report the held-out score.")


def _described(name: str, about: str) -> str:
    """A name and its description, wrapped for the help text."""
    return textwrap.fill(about, 80, initial_indent=f"  {name:<10}", subsequent_indent=" " * 12)


fuse.__doc__ = "\n".join(
    [
        cleandoc(fuse.__doc__ or ""),
        "",
        "Methods (r: rank, s: normalised score, w: weight, N: lists that have the",
        "document):",
        *(_described(method.name, method.about) for method in METHODS.values()),
        "",
        "Normalisations:",
        *(_described(norm.name, norm.about) for norm in NORMS.values()),
    ]
)
