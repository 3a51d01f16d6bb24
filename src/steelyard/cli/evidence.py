"""steelyard evidence: qrels for chunks, from evidence (spans, facts, pages)."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

from steelyard.cli.arguments import Argument, Option
from steelyard.cli.output import print_message


class Overlap(str, Enum):
    """How much of a span a chunk must contain."""

    any = "any"
    majority = "majority"
    whole = "whole"


def evidence(
    source: Annotated[Path, Argument("EVIDENCE", "What chunks must contain: spans, facts, pages.")],
    chunks: Annotated[
        Path, Argument("CHUNKS", "One row per chunk: chunk_id, doc_id, start, end, text; JSON lines, CSV, Parquet.")
    ],
    output: Annotated[Path, Option("The qrels to write; the name selects the format.", "QRELS")],
    overlap: Annotated[Overlap, Option("How much of a span a chunk must contain to be relevant.")] = Overlap.any,
    share: Annotated[float, Option("Share of the words of a fact that a chunk must contain, in order.", "SHARE")] = 1.0,
    ignore_case: Annotated[bool, Option("Match facts without regard to case.")] = False,
    remove_spaces: Annotated[bool, Option("Match facts without regard to white space.")] = False,
    parent: Annotated[str | None, Option("The column of CHUNKS with the parent of a chunk.", "COLUMN")] = None,
    dataset: Annotated[Path | None, Option("The dataset with the documents, to check spans and chunks.", "DIR")] = None,
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
    from steelyard.datasets import Dataset
    from steelyard.evidence import Evidence
    from steelyard.io.evidence import read_chunks

    documents = None if dataset is None else Dataset.read(dataset, judged=False).corpus.texts
    judged = Evidence.read(source).judge(
        read_chunks(chunks),
        overlap=overlap.value,
        share=share,
        case=not ignore_case,
        spaces="removed" if remove_spaces else "single",
        parent=parent,
        documents=documents,
    )
    judged.write(output)
    print_message(f"{output}: {judged}")
    for note in judged.notes:
        print_message(f"  {note}")
