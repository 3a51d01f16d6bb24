"""steelyard evidence: evidence (spans, facts, pages) as judgments of chunks."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

from steelyard.cli.arguments import Argument, Option
from steelyard.cli.output import say


class Cut(str, Enum):
    """When a span that a chunk's border cuts counts."""

    any = "any"
    majority = "majority"
    whole = "whole"


def evidence(
    evidence: Annotated[Path, Argument("EVIDENCE", "What chunks must contain: spans, facts, pages.")],
    chunks: Annotated[
        Path,
        Argument("CHUNKS", "A row a chunk: chunk_id, doc_id, start, end, text; JSON lines, CSV, Parquet."),
    ],
    output: Annotated[
        Path,
        Option("The judgments to write; the name chooses the format.", "QRELS", names=("--output", "-o")),
    ],
    overlap: Annotated[
        Cut, Option("A span that a chunk's border cuts counts where a chunk has this much of it.")
    ] = Cut.any,
    share: Annotated[float, Option("How much of a fact's words must be there, in order.", "SHARE")] = 1.0,
    ignore_case: Annotated[bool, Option("Facts match whatever the case.")] = False,
    remove_spaces: Annotated[bool, Option("Facts match whatever the white space, or none.")] = False,
    parent: Annotated[
        str | None, Option("The column of CHUNKS that names a chunk's parent.", "COLUMN")
    ] = None,
    dataset: Annotated[
        Path | None,
        Option("The dataset whose documents spans and chunks are held against.", "DIR"),
    ] = None,
) -> None:
    """Judge chunks by what they contain, so that one answer key serves every chunking.

    Example: steelyard evidence spans.csv chunks.jsonl -o qrels.jsonl && steelyard evaluate qrels.jsonl bm25.run -m DR@10

    EVIDENCE is spans, MultiHop-RAG questions, an AutoRAG qa file, ragas' reference contexts, or JSON with
    each query's targets. What no chunk holds stays in the judgments and counts as not found.
    """
    from steelyard.datasets import Dataset
    from steelyard.evidence import Evidence, read_chunks

    documents = None if dataset is None else Dataset.read(dataset, judged=False).corpus.texts
    judged = Evidence.read(evidence).judge(
        read_chunks(chunks),
        overlap=overlap.value,
        share=share,
        case=not ignore_case,
        spaces="removed" if remove_spaces else "single",
        parent=parent,
        documents=documents,
    )
    judged.write(output)
    say(f"{output}: {judged}")
    for note in judged.notes:
        say(f"  {note}")
