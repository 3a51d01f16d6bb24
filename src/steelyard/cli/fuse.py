"""steelyard fuse: fuse several runs into one, and tune the fusion."""

from __future__ import annotations

import textwrap
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Expert, Option, UsageError
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
    weights: Annotated[list[float] | None, Option("One weight per run, as in 0.7,0.3.", "W,W", commas=True)] = None,
    parameter: Annotated[
        list[str] | None,
        Option(
            "A parameter of the method: k=60 of rrf (added to ranks), phi=0.8 of rbc (persistence), sigma=0.01 of "
            "logn-isr. With --tune, the values to try, as in k=10,20,60, norm=z,sum, weights=simplex or "
            "weights=1:1,2:1. Repeat for more.",
            "NAME=V,V",
        ),
    ] = None,
    depth: args.Depth = None,
    name: Annotated[str | None, Expert("The name of the fused run.", "NAME")] = None,
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
    folds: Annotated[int, Expert("--tune: number of folds.", "N")] = 5,
    seed: args.Seed = 0,
    rel: args.Rel = None,
    columns: args.Columns = None,
    format: args.TableFormat = Format.table,
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
    run_columns, qrels_columns = args.column_names(columns)
    paths = list(map(args.input_path, runs))
    read = [args.read_run(path, run_columns, len(runs)) for path in with_progress(paths, lambda path: path.name)]
    values = _values(parameter)
    if tune is None:
        if qrels_columns:
            raise UsageError("--columns qrels. is for --tune; add --tune QRELS.")
        if format is not Format.table:
            raise UsageError(
                "--format is for the table that --tune prints; the format of a fused run is that of the name in -o "
                "fused.json."
            )
        fused = fuse_runs(read, method, norm, weights, name, depth, **_one_each(values))
    else:
        if norm or weights:
            raise UsageError(
                "--tune chooses the parameters; name the values to try, as in --parameter norm=z,sum or "
                "--parameter weights=1:1,2:1."
            )
        if depth is not None:
            raise UsageError("--depth cannot be used with --tune; cut the lists afterwards.")
        judged = args.read_qrels(tune, qrels_columns)
        with progress_bar() as progress:
            result = tune_fusion(
                judged, read, method, measure,
                grid=values or None, folds=folds, seed=seed, rel=rel, name=name, progress=progress,
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


def _numbers(text: str, between: str) -> list[float]:
    try:
        return [float(part) for part in text.split(between)]
    except ValueError:
        raise UsageError(f"{text!r} is wrong; expected numbers separated by {between!r}.") from None


def _values(texts: list[str] | None) -> dict[str, Any]:
    """The values of each parameter: numbers, names of normalisations, or weights of the runs separated by colons."""
    found: dict[str, Any] = {}
    for text in texts or []:
        key, _, values = text.partition("=")
        if not values:
            raise UsageError(f"--parameter {text!r} has no value; expected a name and a value, as in k=60.")
        if key == "norm":
            found[key] = values.split(",")
        elif key == "weights":
            found[key] = values if values == "simplex" else [_numbers(part, ":") for part in values.split(",")]
        else:
            found[key] = _numbers(values, ",")
    return found


def _one_each(values: dict[str, Any]) -> dict[str, float]:
    """One number per parameter, for a fusion that is not tuned."""
    for name, several in values.items():
        if name in ("norm", "weights"):
            raise UsageError(f"--parameter {name} is for --tune; use --{name}, or add --tune QRELS.")
        if len(several) > 1:
            raise UsageError(f"--parameter {name} has {len(several)} values; --tune QRELS chooses among them.")
    return {name: several[0] for name, several in values.items()}


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
