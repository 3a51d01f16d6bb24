"""steelyard convert: write a run or judgments in another format."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Literal, cast

from steelyard.cli.arguments import Argument, FileColumns, Option, Output, TableFormat, UsageError, named
from steelyard.cli.output import Format, emit, followed, format_for, say, write
from steelyard.errors import InputError, SteelyardError
from steelyard.io import convert as converted
from steelyard.io import formats, validate_file
from steelyard.report.tables import Table
from steelyard.run import Run


def convert(
    source: Annotated[Path, Argument("IN", "The file to read.")],
    target: Annotated[Path, Argument("OUT", "The file to write; its name chooses the format.")],
    from_format: Annotated[
        str | None,
        Option("The format to read; found from the content otherwise.", "FORMAT", names=("--from",)),
    ] = None,
    to_format: Annotated[
        str | None,
        Option("The format to write; found from the name otherwise.", "FORMAT", names=("--to",)),
    ] = None,
    kind: Annotated[str | None, Option("run or qrels, where the content fits both.", "KIND")] = None,
    columns: FileColumns = None,
    drop_empty: Annotated[
        bool, Option("Leave out queries that hold no documents, which TREC files cannot say.")
    ] = False,
    roll_up: Annotated[
        Path | None,
        Option("Make a run of chunks one of what they belong to, by this table of chunks.", "CHUNKS"),
    ] = None,
    level: Annotated[
        str, Option("--roll-up: what a chunk belongs to: doc_id, parent or page.", "COLUMN")
    ] = "doc_id",
    how: Annotated[str, Option("--roll-up: score by the best chunk, the sum or the first.", "HOW")] = "best",
) -> None:
    """Write a run or judgments in another format.

    Examples:

    steelyard convert bm25.run bm25.parquet

    steelyard convert table.csv bm25.run --columns query_id=question,doc_id=passage,score=sim --drop-empty

    steelyard convert chunks.run documents.parquet --roll-up chunks.jsonl
    """
    if kind not in (None, "run", "qrels"):
        raise InputError(f"--kind is {kind!r}; expected run or qrels.")
    if roll_up is not None:
        rolled = _rolled_up(Run.read(source, from_format, **named(columns, "--columns")), roll_up, how, level)
        (rolled.without_empty() if drop_empty else rolled).write(target, to_format)
        say(f"{target}: {rolled}")
        return
    made = converted(
        source,
        target,
        from_format,
        to_format,
        cast(Literal["run", "qrels"] | None, kind),
        named(columns, "--columns"),
        drop_empty=drop_empty,
    )
    say(str(made))


def _rolled_up(run: Run, chunks: Path, how: str, level: str) -> Run:
    from steelyard.evidence import read_chunks
    from steelyard.evidence import roll_up as rolled_up

    return rolled_up(run, read_chunks(chunks), cast(Literal["best", "sum", "first"], how), level)


convert.__doc__ = (
    f"{cleandoc(convert.__doc__ or '')}\n\nFormats: {', '.join(entry.name for entry in formats())}."
)


WRONG_INPUT = 2


def validate(
    paths: Annotated[
        list[str],
        Argument(
            "PATH", "Runs, judgments, or datasets: folders, or with options '{path: DIR, qrels: FILE}'."
        ),
    ],
    kind: Annotated[str | None, Option("run or qrels, where the content fits both.", "KIND")] = None,
    columns: FileColumns = None,
    format: TableFormat = Format.table,
    output: Output = None,
) -> int:
    """Check files and folders, and say everything that is wrong with them at once.

    Example: steelyard validate qrels.trec bm25.run my-dataset/

    A path that cannot be read is told of, and the others are checked all the same. Exits with 2 if anything
    found keeps a file from being used.
    """
    roles = named(columns, "--columns")
    found = [_checked(path, kind, roles) for path in followed(paths, lambda path: Path(path).name)]
    if format_for(format, output) is Format.table:
        write("\n".join(text for text, _, _ in found), output)
    else:
        rows = [
            [path, severity, text]
            for path, (_, said, _) in zip(paths, found, strict=True)
            for severity, text in said
        ]
        data = [
            {"path": path, "ok": ok, "findings": [{"severity": s, "text": t} for s, t in said]}
            for path, (_, said, ok) in zip(paths, found, strict=True)
        ]
        emit(Table(["path", "severity", "finding"], rows), data, format, output)
    return 0 if all(ok for _, _, ok in found) else WRONG_INPUT


def _checked(path: str, kind: str | None, columns: dict[str, str]) -> tuple[str, list[tuple[str, str]], bool]:
    """What was found, as text and as rows, and whether the file or dataset can be used."""
    if path.startswith("{") or Path(path).is_dir():
        from steelyard.datasets import validate_dataset
        from steelyard.datasets.reading import dataset_named

        try:
            if columns:
                raise UsageError("--columns names the columns of a file, and this is a dataset.")
            dataset = dataset_named(path)
        except SteelyardError as error:
            return f"{path}: not readable\n  error: {error}", [("error", str(error))], False
        findings = validate_dataset(dataset)
        said: list[tuple[str, str]] = [(finding.severity, str(finding)) for finding in findings]
        text = "\n".join(
            [f"{path}: {dataset}", *(f"  {line}" for _, each in said for line in each.splitlines())]
        )
        return text, said, all(finding.severity != "error" for finding in findings)
    checked = validate_file(Path(path), kind=kind, columns=columns)  # type: ignore[arg-type]
    return str(checked), [(finding.severity, finding.text) for finding in checked.findings], checked.ok
