"""Options that several verbs take, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.output import Format

Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure", "-m", help="A measure, as in nDCG@10 or P(rel=2)@5. Repeat for more.", metavar="MEASURE"
    ),
]
DialectName = Annotated[
    str,
    typer.Option(
        "--dialect", help="Whose definitions to use: `steelyard dialects` lists them.", metavar="NAME"
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(help="Judged queries that the run does not have: zero, skip or error.", metavar="POLICY"),
]
NoRelevant = Annotated[
    str | None, typer.Option(help="Queries without a relevant document: zero or skip.", metavar="POLICY")
]
Ties = Annotated[
    str | None,
    typer.Option(help="Equal scores: docid-desc, docid-asc, stable or expected.", metavar="POLICY"),
]
Duplicates = Annotated[
    str | None, typer.Option(help="A document twice in a list: hold, collapse or error.", metavar="POLICY")
]
Rel = Annotated[float | None, typer.Option(help="The lowest grade that counts as relevant.", metavar="GRADE")]
Depth = Annotated[int | None, typer.Option(help="Cut every list at this depth.", metavar="N")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file instead of the terminal.", metavar="FILE"),
]
TableFormat = Annotated[Format, typer.Option("--format", help="How to print the table.")]
