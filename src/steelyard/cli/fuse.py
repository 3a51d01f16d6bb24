"""steelyard fuse: fuse several runs into one, and tune the fusion."""

from __future__ import annotations

import textwrap
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, Setting, UsageError
from steelyard.cli.output import Format, emit, print_messages, progress_bar, with_progress, write, write_prose
from steelyard.fusion.fuse import METHODS, NORMS
from steelyard.fusion.fuse import fuse as fuse_runs
from steelyard.fusion.tune import Tuned
from steelyard.fusion.tune import tune as tune_fusion
from steelyard.io.trec import run_bytes
from steelyard.notes import sentence
from steelyard.qrels import Qrels
from steelyard.report.tables import Cell, Table


def fuse(
    runs: Annotated[list[Path], Argument("RUN", "Two or more runs; - is standard input.")],
    method: Annotated[str, Option("A method, as above.")] = "rrf",
    norm: Annotated[
        list[str] | None,
        Option("A normalisation of scores, as above; --tune: candidates. Not for methods that use ranks.", commas=True),
    ] = None,
    weights: Annotated[
        list[str] | None,
        Option("One weight per run, as in 0.7,0.3; --tune: candidates, 1:1,2:1 or simplex.", "W,W", commas=True),
    ] = None,
    k: Annotated[list[float] | None, Setting("rrf: added to ranks [60]; --tune: candidates.", "N", commas=True)] = None,
    phi: Annotated[list[float] | None, Setting("rbc: persistence [0.8]; --tune: candidates.", "P", commas=True)] = None,
    sigma: Annotated[
        list[float] | None, Setting("logn-isr: added to the logarithm [0.01]; --tune: candidates.", "X", commas=True)
    ] = None,
    depth: args.Depth = None,
    name: Annotated[str | None, Setting("The name of the fused run.")] = None,
    output: Annotated[Path | None, Option("Write the fused run here; its name selects the format.")] = None,
    tune: Annotated[Path | None, Option("Choose parameters with these qrels, by cross-validation.", "QRELS")] = None,
    measure: Annotated[str, Option("--tune: the measure to tune for.", "MEASURE")] = "nDCG@10",
    folds: Annotated[int, Setting("--tune: number of folds.")] = 5,
    seed: args.Seed = 0,
    rel: args.Rel = None,
    columns: args.Columns = None,
    format: args.TableFormat = "table",
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
    grid: dict[str, Any] = {"k": k, "phi": phi, "sigma": sigma, "norm": norm}
    grid = {name: values for name, values in grid.items() if values}
    if tune is None:
        if qrels_columns:
            raise UsageError("--set columns=qrels... is for --tune; add --tune QRELS.")
        if format != "table":
            raise UsageError(
                "--format is for the table that --tune prints; the format of a fused run is that of the name in -o "
                "fused.json."
            )
        for parameter, values in grid.items():
            if len(values) > 1:
                raise UsageError(f"{parameter} has {len(values)} values; --tune QRELS chooses among them.")
        one_each = {parameter: values[0] for parameter, values in grid.items()}
        numbers = None if weights is None else _numbers(weights, "0.7,0.3 (--tune QRELS tries several)")
        fused = fuse_runs(read, method, weights=numbers, name=name, depth=depth, **one_each)
    else:
        if weights is not None:
            several = [_numbers(part.split(":"), "1:1,2:1") for part in weights if part != "simplex"]
            grid["weights"] = several or "simplex"
        if depth is not None:
            raise UsageError("--set depth cannot be used with --tune; cut the lists afterwards.")
        judged = Qrels.read(args.input_path(tune), **qrels_columns)
        with progress_bar() as progress:
            result = tune_fusion(
                judged, read, method, measure,
                grid=grid or None, folds=folds, seed=seed, rel=rel, name=name, progress=progress,
            )  # fmt: skip
        fused = result.run
        _print_tuned(result, format)
    messages = [sentence(note) for note in fused.notes] if tune is None or format != "table" else []
    if output is not None:
        fused.write(output)
        messages.append(f"{fused!r} is in {output}.")
    print_messages(messages)
    if output is None and tune is None:
        write(run_bytes(fused).decode().rstrip("\n"), None)


def _numbers(texts: list[str], example: str) -> list[float]:
    """The numbers of --weights."""
    try:
        return list(map(float, texts))
    except ValueError:
        raise UsageError(f"--weights is {','.join(texts)!r}; expected numbers, as in {example}.") from None


def _print_tuned(result: Tuned, format: Format) -> None:
    if format == "table":
        write_prose(str(result), None)
        return
    rows: list[list[Cell]] = [
        [f"fold {number}", str(fold.chosen), fold.tuned_on, fold.held_out]
        for number, fold in enumerate(result.folds, 1)
    ]
    rows.append(["all", str(result.final), result.tuned_on, result.held_out])
    emit(Table(["fold", "chosen", "tuned on", "held out"], rows), result.to_dict(), format, None)
    if format != "json":
        print_messages([f"Optimism (tuned on minus held out): {result.optimism:.4f}. Report the held-out score."])


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
