"""steelyard gate: check a result against rules and a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, Setting, UsageError
from steelyard.cli.output import Format, emit_result, format_for, print_message, print_messages, print_tables, write
from steelyard.comparison.rules import Rule, read_rules
from steelyard.errors import SteelyardError
from steelyard.gating import checking
from steelyard.gating.baseline import save_baseline as write_baseline
from steelyard.gating.inputs import GateInput, gate_input
from steelyard.gating.result import GateResult, junit_error, markdown_error
from steelyard.notes import sentence
from steelyard.wording import SHOWN_NAMES, counted, listed


def gate(
    result: Annotated[Path, Argument("RESULT", "A result folder, or the JSON of `evaluate --per-query`.")],
    baseline: Annotated[
        Path | None,
        Option(
            "What to compare with: the same, a baseline.json, or history:best, history:last, history:COMMIT.",
            "FILE|DIR|history:POINT",
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        Option("A rule, as in 'nDCG@10 >= 0.40', or a file with one per line. Repeat for more.", "RULE|@FILE"),
    ] = None,
    run: Annotated[
        list[str] | None, Option("Check this run; default: all runs, or the only run of the baseline. Repeat for more.")
    ] = None,
    baseline_run: Annotated[
        str | None, Setting("Compare with this run; default: the run of the same name, or the only one.")
    ] = None,
    queries: args.QueryColumns = None,
    test: Annotated[str, args.TEST._replace(setting=True)] = "t",
    correction: Annotated[str, args.CORRECTION._replace(setting=True)] = "holm",
    alpha: args.Alpha = 0.05,
    permutations: args.Permutations = None,
    seed: args.Seed = 0,
    allow: Annotated[
        list[str] | None,
        Option(
            "What may differ from the baseline: queries (missing ones) or judgments; failed=N, the queries that a run "
            "may fail on. Repeat for more.",
            "CHANGE",
            commas=True,
        ),
    ] = None,
    strict: args.Strict = False,
    junit: Annotated[Path | None, Option("Also write JUnit XML here.")] = None,
    markdown: Annotated[Path | None, Option("Also write Markdown for a pull request here.")] = None,
    save_baseline: Annotated[
        Path | None, Option("Write the result as a baseline; with --rule or --baseline, only if it passes.")
    ] = None,
    show_all: args.ShowAll = False,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> int:
    """Check a result against rules and compare it with a baseline. The exit code is 0
    if every rule passes, 1 if one fails.

    Examples:

      steelyard gate bench-result --save-baseline baseline.json

      steelyard gate bench-result --baseline baseline.json \\
          --rule 'nDCG@10 >= 0.40' --junit gate.xml --markdown gate.md

    Rules:

      nDCG@10 >= 0.40                     also <=, > and <
      nDCG@10 >= baseline - 0.01
      nDCG@10 not worse than baseline by 0.01
      nDCG@10 equivalent to baseline within 0.01
      no significant drop in nDCG@10      `rise` if lower is better
      nDCG@10[type=multi-hop] >= 0.30     any rule for a slice of the queries

    Rules of `gate:` in bench.yaml are also checked. If no rule compares with the
    baseline, there must be no significant drop in any measure that both have. A run
    that failed on queries does not pass. A rule whose outcome depends on documents
    that nobody judged, or on how much of a passage a chunk must contain, is
    undecided: a warning, or with --strict exit code 1.
    """
    all_rules: list[str | Rule] = [
        condition for text in rule or [] for condition in (read_rules(text[1:]) if text.startswith("@") else [text])
    ]
    changes = [change for change in allow or [] if not change.startswith("failed=")]
    failed = [_number(change) for change in allow or [] if change not in changes]
    source = gate_input(result)
    if save_baseline is not None and not all_rules and baseline is None:
        if format != "table" or output is not None:
            raise UsageError(
                "a first baseline is written and nothing is checked, so there is no table for --format and -o."
            )
        if source.rules:
            print_message("The rules of `gate:` are not checked when a first baseline is written.")
        _save(source, save_baseline, run)
        return 0
    try:
        checked = checking.gate(
            source, all_rules, baseline=baseline, run=run, baseline_run=baseline_run, queries=queries, test=test,
            correction=correction, alpha=alpha, permutations=permutations, seed=seed, allow=changes,
            allow_failed=max(failed, default=None), strict_judged=strict,
        )  # fmt: skip
    except SteelyardError as error:
        for path, error_text in ((junit, junit_error), (markdown, markdown_error)):
            if path is not None:
                write(error_text(str(error)), path)
        raise
    for path, text in ((junit, checked.to_junit), (markdown, checked.to_markdown)):
        if path is not None:
            write(text(), path)
    _print(checked, format, output, show_all)
    if not checked.passed:
        if save_baseline is not None:
            print_message(f"The result did not pass and is not written to {save_baseline}.")
        return 1
    if save_baseline is not None:
        _save(source, save_baseline, run)
    return 0


def _number(change: str) -> int:
    """The number of --allow failed=N."""
    try:
        return int(change.partition("=")[2])
    except ValueError:
        raise UsageError(f"--allow is {change!r}; expected a number of queries, as in failed=3.") from None


def _print(checked: GateResult, format: Format, output: Path | None, show_all: bool) -> None:
    """Print the verdict, the rules and the notes; on a screen only the rules that did not pass, and their number."""
    passed = checked.verdict == "passed"
    print_message(checked.sentence, "green" if passed else "red" if checked.failures else "yellow")
    if show_all or format_for(format, output) != "table" or output is not None:
        emit_result(checked, format, output, table=checked.__repr__)
        print_messages(checked.remarks)
        return
    notable = [row for row in checked.rows if row.undecided or not row.passed]
    if not notable:
        print_messages(map(sentence, checked.warnings))
        return
    print_tables([checked.table_of(notable)])
    others = len(checked.rows) - len(notable)
    print_messages([f"{counted(others, 'rule')} passed (--all shows them)."] if others else [])
    print_messages(checked.remarks)


def _save(result: GateInput, path: Path, run: list[str] | None) -> None:
    """Write a baseline, and print what it has."""
    write_baseline(result, path, run)
    for name, failures in result.failures.items():
        if run is None or name in run:
            print_message(f"Run {name!r} is written although {failures}.")
    written = gate_input(path)
    print_message(
        f"{path} is the baseline: {counted(len(written.scores.queries), 'query', 'queries')}, "
        f"{counted(len(written.keys), 'measure')} of {listed(written.scores.runs, SHOWN_NAMES)} "
        f"({path.stat().st_size / 1e3:,.0f} kB). Compare a later result with it: "
        f"steelyard gate RESULT --baseline {path}"
    )
