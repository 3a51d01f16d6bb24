"""Options that several verbs take, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli.output import Format
from steelyard.cli.parsing import Option

Measures = Annotated[
    list[str] | None,
    Option(
        "A measure, as in nDCG@10 or P(rel=2)@5. Repeat for more.",
        "MEASURE",
        names=(
            "--measure",
            "-m",
        ),
    ),
]
DialectName = Annotated[
    str,
    Option("Whose definitions to use: `steelyard dialects` lists them.", "NAME", names=("--dialect",)),
]
Missing = Annotated[
    str | None,
    Option(
        "Judged queries that the run does not have (an empty list is an answer): zero, skip or error.",
        "POLICY",
    ),
]
NoRelevant = Annotated[str | None, Option("Queries without a relevant document: zero or skip.", "POLICY")]
Ties = Annotated[
    str | None,
    Option("Equal scores: docid-desc, docid-asc, stable or expected.", "POLICY"),
]
Duplicates = Annotated[str | None, Option("A document twice in a list: hold, collapse or error.", "POLICY")]
Unjudged = Annotated[
    str | None,
    Option("Documents that a query did not judge: keep, or remove to measure condensed lists.", "POLICY"),
]
Rel = Annotated[float | None, Option("The lowest grade that counts as relevant.", "GRADE")]
Depth = Annotated[int | None, Option("Cut every list at this depth.", "N")]
Output = Annotated[
    Path | None,
    Option(
        "Write to this file instead of the terminal.",
        "FILE",
        names=(
            "--output",
            "-o",
        ),
    ),
]
RESULT_FOLDER = Option("The result folder.", "DIR", names=("--output", "-o"))
Fresh = Annotated[bool, Option("Ask everything again, whatever was asked before.")]
TableFormat = Annotated[Format, Option("How to print the table.")]
