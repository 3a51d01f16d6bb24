"""The bench.yaml that `steelyard init` writes: it runs as it is, and explains itself."""

from __future__ import annotations

from pathlib import Path

from steelyard.errors import InputError
from steelyard.formats.atomic import write_file

STARTER = """\
# A bench: retrievers run over a dataset, timed, measured and compared.
#   steelyard bench bench.yaml

# `demo` is bundled. Or a path: a folder with corpus.jsonl, queries.jsonl and qrels.tsv (BEIR), AutoRAG
# parquet files, MultiHop-RAG or LlamaIndex JSON, MS MARCO tables, or a CSV with its columns named.
dataset: demo

# Documents asked of every retriever.
depth: 100

# A name, or a name with settings. A setting given as a list makes one retriever for each value.
# `name:` among the settings is the row's label.
retrievers:
  - bm25-okapi: {k1: 1.2, b: 0.75}
  - bm25-plus
  - dense                                    # latent semantic analysis, fitted on the corpus
  - hybrid: {of: [bm25-okapi, dense], fuse: rrf}
  - random: {seed: 42}
  # - python: my_package.search:retrieve     # any function of your own
  # - run: old/bm25.run                      # a finished run joins the table

# `steelyard measures` lists them; `steelyard explain nDCG@10` says what one is, exactly.
measures: [nDCG@10, R@20, RR@10, DR@20, Confusion@3, Latency]

# Whose definitions: `steelyard dialects` lists them.
dialect: steelyard

# A weighted score to rank by: `default`, or measures with weights, as in {nDCG@10: 0.7, R@20: 0.3}.
composite: default

# Every retriever is tested against this one; leave it out to test every two.
baseline: bm25-okapi
test: t

# Slice the table by a column of the queries.
by: type

# What `steelyard gate` checks of every run (or of one: --run NAME), beside the rules it is given.
# With `{rules: [...], allow_failed: 2}`, a run may have failed on two queries and pass.
# gate:
#   - no significant drop in nDCG@10
#   - nDCG@10 >= baseline - 0.02
"""


def write_starter(folder: Path) -> Path:
    """Write bench.yaml into a folder; one that is there already is left alone."""
    path = folder / "bench.yaml"
    if path.exists():
        raise InputError(f"{path} is there already; name another folder, or edit it.")
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, STARTER.encode())
    return path
