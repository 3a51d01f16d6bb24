"""steelyard validate: check files and say everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli.options import Output, TableFormat
from steelyard.cli.output import Format, emit, followed, format_for, write
from steelyard.cli.parsing import Argument, Option, UsageError
from steelyard.cli.reading import FileColumns, named
from steelyard.errors import SteelyardError
from steelyard.formats import validate_file
from steelyard.report.tables import Table

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
        from steelyard.datasets.named import dataset_named

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
