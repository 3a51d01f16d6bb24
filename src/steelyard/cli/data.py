"""steelyard check, convert, evidence and validate: data, before anything is measured."""

from __future__ import annotations

import textwrap
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Literal, cast

from steelyard.cli import WRONG_INPUT
from steelyard.cli import options as args
from steelyard.cli import output as out
from steelyard.cli.options import Argument, Option, RunFile, Setting, UsageError
from steelyard.errors import InputError, NoQrelsError, SteelyardError
from steelyard.io import convert as convert_file
from steelyard.io import list_formats, validate_file
from steelyard.io.files import STANDARD_OUTPUT
from steelyard.io.reading import scored_by_rank
from steelyard.report.tables import Table
from steelyard.run import Run
from steelyard.wording import shortened_name


def check(
    dataset: Annotated[
        str, Argument("DATASET", "As in bench.yaml: a folder, or '{queries: FILE, qrels: FILE}'. Or a bench's result.")
    ],
    runs: Annotated[list[RunFile] | None, Argument("RUN", "Runs: FILE or NAME=FILE.")] = None,
    measure: args.Measures = None,
    strict: args.Strict = False,
    columns: args.Columns = None,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> int:
    """Check the meaning of data: qrels, corpus, questions and runs.

    Examples:

      steelyard check my-dataset bm25.run dense.run

      steelyard check '{queries: questions.csv, qrels: qrels.txt}' *.run --strict

    Every finding has a count, examples, and its effect on the leaderboard: all runs
    evaluated again with the problem fixed, by the first measure. `validate` checks
    the form of files instead.
    """
    from steelyard.benchmark.folder import read_record
    from steelyard.quality.check import Check, effect_text
    from steelyard.quality.check import check as check_data

    if (Path(dataset) / "result.json").is_file():
        stored = read_record(Path(dataset)).get("check")
        if stored is None or runs or measure:
            fault = "the bench made no check" if stored is None else "its check has the runs and measure of the bench"
            raise InputError(f"this is the result of a bench, and {fault}. Give its dataset instead.", dataset)
        result = Check.from_dict(stored)
    else:
        result = check_data(dataset, args.read_runs(runs or [], args.column_names(columns)[0]), measure or None)

    def show() -> None:
        out.print_message(result.verdict, "bold")
        lines = []
        for finding in result.findings:
            shown = "; ".join(shortened_name(example, 60) for example in finding.examples[:2])
            lines.append(f"{finding.severity}: {finding.code} ({finding.count:,})  {effect_text(finding)}".rstrip())
            lines += [f"  {finding.text}", *([f"  {shown}"] if shown else [])]
        if lines:
            out.write_prose("\n".join([*lines, ""]), None)
        if result.ceilings:
            out.print_tables(result.document().tables[-1:])

    out.emit_result(result, format, output, show)
    return 1 if strict and result.problems else 0


def convert(
    source: Annotated[Path, Argument("IN", "The file to read; - is standard input.")],
    target: Annotated[Path, Argument("OUT", "The file to write; its name selects the format. - is standard output.")],
    from_format: Annotated[
        str | None, Option("Format of IN; default: detected from the content.", "FORMAT", names=("--from",))
    ] = None,
    to_format: Annotated[
        str | None, Option("Format of OUT; default: from its suffix; without one, TREC.", "FORMAT", names=("--to",))
    ] = None,
    kind: args.Kind = None,
    columns: args.Columns = None,
    drop_empty: Annotated[bool, Setting("Leave out queries without documents, which TREC files cannot store.")] = False,
    by_rank: Annotated[
        bool, Setting("Write the scores n, n - 1, ... 1, for a run whose own scores do not follow its ranks.")
    ] = False,
    roll_up: Annotated[
        Path | None, Option("Turn a run of chunks into one of documents, with this table of chunks.", "CHUNKS")
    ] = None,
    level: Annotated[str, Setting("--roll-up: the level: doc_id, parent or page.", "COLUMN")] = "doc_id",
    how: Annotated[
        str, Setting("--roll-up: the score of a document, from those of its chunks: best, sum or first.", "HOW")
    ] = "best",
) -> None:
    """Write a run or qrels in another format.

    Examples:

      steelyard convert bm25.run bm25.parquet

      steelyard convert table.csv bm25.run \\
          --set columns=query_id=question,doc_id=passage,score=sim

      steelyard convert out/runs/hybrid.parquet hybrid.run --set by_rank=yes

      steelyard convert chunks.run documents.parquet --roll-up chunks.jsonl
    """
    if kind not in (None, "run", "qrels"):
        raise InputError(f"--set kind is {kind!r}; expected run or qrels.")
    source, target = args.input_path(source), args.input_path(target, STANDARD_OUTPUT)
    names = args.file_columns(columns)
    if roll_up is not None:
        from steelyard.evidence import roll_up as roll_up_run

        run = Run.read(source, from_format, **names)
        rolled = roll_up_run(run, roll_up, cast(Literal["best", "sum", "first"], how), level)
        kept = rolled.without_empty() if drop_empty else rolled
        (scored_by_rank(kept) if by_rank else kept).write(target, to_format)
        out.print_message(f"{target}: {rolled}")
        return
    of = cast(Literal["run", "qrels"] | None, kind)
    converted = convert_file(source, target, from_format, to_format, of, names, drop_empty=drop_empty, by_rank=by_rank)
    out.print_message(str(converted))


_FORMATS = textwrap.fill(f"Formats: {', '.join(list_formats())}.", 80)
convert.__doc__ = f"{cleandoc(convert.__doc__ or '')}\n\n{_FORMATS}"


def validate(
    paths: Annotated[list[str], Argument("PATH", "Runs, qrels, or datasets: folders, or '{path: DIR, qrels: FILE}'.")],
    kind: args.Kind = None,
    columns: args.Columns = None,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> int:
    """Check files and folders, and report all problems at once.

    Example:

      steelyard validate qrels.trec bm25.run my-dataset/

    A path that cannot be read is reported, and the others are still checked. The
    exit code is 2 if a file or dataset cannot be used.
    """
    names = args.file_columns(columns)
    checks = [_check(path, kind, names) for path in out.with_progress(paths, lambda path: Path(path).name)]
    if out.format_for(format, output) == "table" and not out.is_page(output):
        out.write_prose("\n".join(text for text, _, _ in checks), output)
    else:
        rows = [
            [path, severity, text]
            for path, (_, findings, _) in zip(paths, checks, strict=True)
            for severity, text in findings
        ]
        data = [
            {"path": path, "ok": ok, "findings": [{"severity": s, "text": t} for s, t in findings]}
            for path, (_, findings, ok) in zip(paths, checks, strict=True)
        ]
        out.emit(Table(["path", "severity", "finding"], rows), data, format, output)
    return 0 if all(ok for _, _, ok in checks) else WRONG_INPUT


def _check(path: str, kind: str | None, columns: dict[str, str]) -> tuple[str, list[tuple[str, str]], bool]:
    """The findings as text and as (severity, text), and whether the file or dataset can be used."""
    if path.startswith("{") or Path(path).is_dir():
        from steelyard.datasets import validate_dataset
        from steelyard.io.datasets import dataset_named

        try:
            if columns:
                raise UsageError("--set columns is for the columns of a file, and this is a dataset.")
            try:
                dataset = dataset_named(path)
            except NoQrelsError:
                dataset = dataset_named(path, judged=False)
        except SteelyardError as error:
            return f"{path}: not readable\n  error: {error}", [("error", str(error))], False
        findings = validate_dataset(dataset)
        rows: list[tuple[str, str]] = [(finding.severity, str(finding)) for finding in findings]
        text = "\n".join([f"{path}: {dataset}", *(f"  {line}" for _, message in rows for line in message.split("\n"))])
        return text, rows, all(finding.severity != "error" for finding in findings)
    checked = validate_file(Path(path), kind=kind, columns=columns)  # type: ignore[arg-type]
    return str(checked), [(finding.severity, finding.text) for finding in checked.findings], checked.ok


def evidence(
    source: Annotated[Path, Argument("EVIDENCE", "What chunks must contain: spans, facts, pages.")],
    chunks: Annotated[
        Path, Argument("CHUNKS", "One row per chunk: chunk_id, doc_id, start, end, text; JSON lines, CSV, Parquet.")
    ],
    output: Annotated[Path, Option("The qrels to write; the name selects the format.", "QRELS")],
    overlap: Annotated[
        Literal["any", "majority", "whole"], Option("How much of a span a chunk must contain to be relevant.")
    ] = "any",
    share: Annotated[float, Setting("Share of a fact's words that a chunk must contain, in order.", "SHARE")] = 1.0,
    ignore: Annotated[
        list[Literal["case", "spaces"]] | None, Setting("What does not matter when facts are matched. Repeat for both.")
    ] = None,
    parent: Annotated[str | None, Setting("The column of CHUNKS with the parent of a chunk.", "COLUMN")] = None,
    dataset: args.Texts = None,
) -> None:
    """Make qrels for chunks from evidence, so that one set of evidence serves every
    chunking: a chunk is relevant if it contains what a query needs.

    Example:

      steelyard evidence spans.csv chunks.jsonl -o qrels.jsonl
      steelyard evaluate qrels.jsonl bm25.run -m DR@10

    EVIDENCE is spans, MultiHop-RAG questions, an AutoRAG qa file, the reference
    contexts of ragas, or JSON with the targets of each query. A target that is in
    no chunk stays in the qrels and counts as not found.
    """
    from steelyard.evidence import Evidence
    from steelyard.io.datasets import dataset_named

    judged = Evidence.read(source).judge(
        chunks,
        overlap=overlap,
        share=share,
        case="case" not in (ignore or []),
        spaces="removed" if "spaces" in (ignore or []) else "single",
        parent=parent,
        documents=None if dataset is None else dataset_named(dataset, judged=False).corpus.texts,
    )
    judged.write(output)
    out.print_message(f"{output}: {judged}")
    out.print_messages(f"  {note}" for note in judged.notes)
