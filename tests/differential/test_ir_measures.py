"""Comparison with ir_measures' Compat on lists with tied scores."""

from __future__ import annotations

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer

ir_measures = import_peer("ir_measures")

QUERIES, DOCUMENTS = 2_000, 15


def tied_lists() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Grades and scores with many ties, the qrels in an order of their own."""
    rng = np.random.default_rng(11)
    qrels, run = {}, {}
    for number in range(QUERIES):
        names = [f"d{document}" for document in rng.permutation(DOCUMENTS).tolist()]
        qrels[f"q{number}"] = {name: int(rng.integers(0, 3)) for name in names[: int(rng.integers(2, 12))]}
        qrels[f"q{number}"][names[0]] = 1
        retrieved = rng.permutation(names)[: int(rng.integers(1, DOCUMENTS))].tolist()
        run[f"q{number}"] = {name: float(rng.integers(1, 6)) for name in retrieved}
    return qrels, run


@pytest.mark.parametrize("name", ["Compat", "Compat(p=0.8)", "Compat(p=0.8,normalize=False)"])
def test_compat_with_tied_scores(name: str, tmp_path) -> None:
    qrels, run = tied_lists()
    measure = ir_measures.parse_measure(name)
    expected = {each.query_id: each.value for each in ir_measures.iter_calc([measure], qrels, run)}
    lines = [f"{query} 0 {doc} {grade}" for query, judged in qrels.items() for doc, grade in judged.items()]
    (tmp_path / "qrels.txt").write_text("\n".join(lines) + "\n")
    for known in (qrels, sy.Qrels.read(tmp_path / "qrels.txt")):
        found = sy.evaluate(known, run, name, dialect="ir_measures").per_query
        ours = dict(zip(found["query_id"], found[name], strict=True))
        assert ours == pytest.approx(expected, abs=1e-12)
    own = sy.evaluate(qrels, run, name, ties="docid-asc").per_query[name].to_numpy()
    other = np.array([expected[query] for query in run])
    assert np.sum(own > other + 1e-9) > 50, "the ideal list of the definition is the most similar one"
    assert not np.any(own < other - 1e-9)
