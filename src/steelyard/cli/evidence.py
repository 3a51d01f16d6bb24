"""steelyard evidence: qrels for chunks, from evidence (spans, facts, pages)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from steelyard.cli.options import Argument, Option, Setting, Texts
from steelyard.cli.output import print_message, print_messages


def evidence(
    source: Annotated[Path, Argument("EVIDENCE", "What chunks must contain: spans, facts, pages.")],
    chunks: Annotated[
        Path, Argument("CHUNKS", "One row per chunk: chunk_id, doc_id, start, end, text; JSON lines, CSV, Parquet.")
    ],
    output: Annotated[Path, Option("The qrels to write; the name selects the format.", "QRELS")],
    overlap: Annotated[
        Literal["any", "majority", "whole"], Option("How much of a span a chunk must contain to be relevant.")
    ] = "any",
    share: Annotated[
        float, Setting("Share of the words of a fact that a chunk must contain, in order.", "SHARE")
    ] = 1.0,
    ignore: Annotated[
        list[Literal["case", "spaces"]] | None, Setting("What does not matter when facts are matched. Repeat for both.")
    ] = None,
    parent: Annotated[str | None, Setting("The column of CHUNKS with the parent of a chunk.", "COLUMN")] = None,
    dataset: Texts = None,
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

    documents = None if dataset is None else dataset_named(dataset, judged=False).corpus.texts
    judged = Evidence.read(source).judge(
        chunks,
        overlap=overlap,
        share=share,
        case="case" not in (ignore or []),
        spaces="removed" if "spaces" in (ignore or []) else "single",
        parent=parent,
        documents=documents,
    )
    judged.write(output)
    print_message(f"{output}: {judged}")
    print_messages(f"  {note}" for note in judged.notes)
