"""steelyard convert: write a run or judgments in another format."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Literal, cast

from steelyard.cli.columns import FileColumns, named
from steelyard.cli.output import say
from steelyard.cli.parsing import Argument, Option
from steelyard.errors import InputError
from steelyard.formats import convert as converted
from steelyard.formats import formats


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
) -> None:
    """Write a run or judgments in another format.

    Examples:

    steelyard convert bm25.run bm25.parquet

    steelyard convert table.csv bm25.run --columns query_id=question,doc_id=passage,score=sim --drop-empty
    """
    if kind not in (None, "run", "qrels"):
        raise InputError(f"--kind is {kind!r}; expected run or qrels.")
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


convert.__doc__ = (
    f"{cleandoc(convert.__doc__ or '')}\n\nFormats: {', '.join(entry.name for entry in formats())}."
)
