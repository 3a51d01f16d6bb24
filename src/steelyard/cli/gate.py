"""steelyard gate: may this result pass?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli.arguments import Argument, Option, Output, TableFormat, UsageError
from steelyard.cli.output import Format, emit, format_for, say, write
from steelyard.comparison.rules import Rule, read_rules
from steelyard.errors import SteelyardError
from steelyard.gate.baseline import as_flags
from steelyard.gate.baseline import save_baseline as saved
from steelyard.gate.check import check
from steelyard.gate.inputs import Measured, measured
from steelyard.gate.result import GateResult, junit_error, markdown_error
from steelyard.wording import SHOWN_NAMES, counted, listed

FAILED = 1


def gate(
    result: Annotated[Path, Argument("RESULT", "A result folder, or the JSON of `evaluate --per-query`.")],
    baseline: Annotated[
        Path | None, Option("What to hold it against: the same, or a baseline.json.", "FILE|DIR")
    ] = None,
    rule: Annotated[
        list[str] | None, Option("A rule, as in 'nDCG@10 >= 0.40'. Repeat for more.", "RULE")
    ] = None,
    rules: Annotated[Path | None, Option("A file of rules, one a line; # begins a comment.", "FILE")] = None,
    run: Annotated[
        list[str] | None,
        Option("Check this run; without it, every run, or the baseline's only one. Repeat for more.", "NAME"),
    ] = None,
    baseline_run: Annotated[
        str | None,
        Option("Hold it against this run; without it, the one of the same name, or the only one.", "NAME"),
    ] = None,
    queries: Annotated[
        Path | None, Option("The queries' columns, for slices: JSONL, CSV, TSV or Parquet.", "FILE")
    ] = None,
    test: Annotated[str, Option("t, wilcoxon, sign, permutation or bootstrap; one-sided.", "TEST")] = "t",
    correction: Annotated[str, Option("For many tests: none, bonferroni, holm or bh.", "NAME")] = "holm",
    alpha: Annotated[float, Option("What counts as significant.", "P")] = 0.05,
    permutations: Annotated[int, Option("How many, for the permutation test.", "N")] = 100_000,
    seed: Annotated[int, Option("The same seed gives the same bytes.", "N")] = 0,
    allow: Annotated[
        list[str] | None,
        Option("What may differ from the baseline: queries (gone) or judgments. Repeat for both.", "CHANGE"),
    ] = None,
    allow_failed: Annotated[
        int | None,
        Option("Queries that a run may have failed on; 0, or what bench.yaml says under `gate:`.", "N"),
    ] = None,
    junit: Annotated[Path | None, Option("Also write JUnit XML here.", "FILE")] = None,
    markdown: Annotated[Path | None, Option("Also write Markdown for a pull request here.", "FILE")] = None,
    save_baseline: Annotated[
        Path | None,
        Option(
            "Keep the result as a baseline here; with --rule, --rules or --baseline, only if it passes.",
            "FILE",
        ),
    ] = None,
    format: TableFormat = Format.table,
    output: Output = None,
) -> int:
    """May this result pass? Exits with 0 if every rule is kept, with 1 if one is broken.

    Examples:

    steelyard gate bench-result --save-baseline baseline.json

    steelyard gate bench-result --baseline baseline.json --rule 'nDCG@10 >= 0.40' --junit gate.xml --markdown gate.md

    Rules:

      nDCG@10 >= 0.40                   also <=, > and <
      nDCG@10 >= baseline - 0.01
      no significant drop in nDCG@10    `rise` where less is better
      nDCG@10[type=multi-hop] >= 0.30   any of them for the queries with a value in a column

    Rules under `gate:` in bench.yaml are checked too. Where no rule speaks of the baseline, there must
    be no significant drop in any measure that both have. A run that failed on queries does not pass.
    """
    source = measured(result)
    given: list[str | Rule] = [*(rule or []), *(read_rules(rules) if rules is not None else [])]
    if save_baseline is not None and not given and baseline is None:
        if format is not Format.table or output is not None:
            raise UsageError(
                "a first baseline is kept and nothing is checked, so there is no table for --format and -o."
            )
        if source.rules:
            say("The rules under `gate:` are not checked where a first baseline is kept.")
        return _kept(source, save_baseline, run)
    try:
        with as_flags():
            checked = check(
                source, given, baseline=baseline, run=run, baseline_run=baseline_run, queries=queries, test=test,
                correction=correction, alpha=alpha, permutations=permutations, seed=seed, allow=allow or (),
                allow_failed=allow_failed,
            )  # fmt: skip
    except SteelyardError as error:
        for path, told in ((junit, junit_error), (markdown, markdown_error)):
            if path is not None:
                write(told(str(error)), path)
        raise
    for path, text in ((junit, checked.to_junit), (markdown, checked.to_markdown)):
        if path is not None:
            write(text(), path)
    _print(checked, format, output)
    if not checked.passed:
        if save_baseline is not None:
            say(f"The result did not pass and is not kept in {save_baseline}.")
        return FAILED
    return 0 if save_baseline is None else _kept(source, save_baseline, run)


def _print(checked: GateResult, format: Format, output: Path | None) -> None:
    say(checked.sentence)
    chosen = format_for(format, output)
    if chosen is Format.markdown:
        write(checked.to_markdown(), output)
    elif chosen is Format.csv:
        write(checked.to_csv(), output)
    else:
        emit(checked.table, checked.to_dict, format, output)
    for line in (checked.method, *checked.warnings):
        if line:
            say(line)


def _kept(result: Measured, path: Path, run: list[str] | None) -> int:
    saved(result, path, run)
    for name, found in result.failed.items():
        if run is None or name in run:
            say(f"Run {name!r} is kept as it is: {found}.")
    kept = measured(path)
    runs = listed(kept.board.runs, SHOWN_NAMES)
    say(
        f"{path} is the baseline: {counted(len(kept.board.queries), 'query', 'queries')}, "
        f"{counted(len(kept.keys), 'measure')} of {runs} "
        f"({path.stat().st_size / 1e3:,.0f} kB). Hold a later result against it: "
        f"steelyard gate RESULT --baseline {path}"
    )
    return 0
