"""steelyard convert: write a run or judgments in another format."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Literal, cast

from steelyard.cli.output import say
from steelyard.cli.parsing import Argument, Option
from steelyard.cli.reading import FileColumns, named
from steelyard.errors import InputError
from steelyard.formats import convert as converted
from steelyard.formats import formats
from steelyard.runs import Run


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
