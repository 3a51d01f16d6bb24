"""A run read ahead gives the same hits as one read later, or None."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from needs import needs_kernel
from same_hits import same_hits
from steelyard import Qrels
from steelyard import native as ahead
from steelyard.alignment.hits import Hits, Ordering
from steelyard.alignment.scans import scan_file
from steelyard.native import kernel, options

pytestmark = needs_kernel


@pytest.fixture(autouse=True)
def nothing_too_small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ahead, "_SMALLEST", 1)
    yield
    ahead._started.clear()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    qrels, run = tmp_path / "x.qrels", tmp_path / "x.run"
    qrels.write_text("".join(f"q{q} 0 d{d} {d % 3}\n" for q in range(40) for d in range(0, 30, 7)))
    run.write_text("".join(f"q{q} Q0 d{d} {d} {(d * 13 + q) % 17}.5 tag\n" for q in range(50) for d in range(60)))
    return qrels, run


def scanned(qrels: Path, run: Path, ordering: Ordering) -> Hits:
    found = scan_file(run, Qrels.read(qrels).judged, ordering)
    assert found is not None
    return found


@pytest.mark.parametrize("ordering", [Ordering(), Ordering("docid-asc", "collapse"), Ordering("stable", "hold", True)])
def test_reading_ahead_gives_the_same_hits(files: tuple[Path, Path], ordering: Ordering) -> None:
    qrels, run = files
    plain = scanned(qrels, run, ordering)
    ahead.read_ahead(str(qrels), str(run), options(ordering))
    native = kernel()
    assert native is not None
    judged = Qrels.read(qrels).judged
    wanted = native.Judged(judged.query_ids, judged.starts, judged.doc_ids)
    assert ahead.read_result(run.stat(), wanted, options(ordering)) is not None
    ahead.read_ahead(str(qrels), str(run), options(ordering))
    assert same_hits(scanned(qrels, run, ordering), plain)
    assert not ahead._started


def test_another_ordering_qrels_or_run_is_read_again(files: tuple[Path, Path], tmp_path: Path) -> None:
    qrels, run = files
    fewer, other = tmp_path / "fewer.qrels", tmp_path / "other.run"
    fewer.write_text("q1 0 d7 1\n")
    other.write_text("q1 Q0 d7 1 2.5 tag\n")
    for started, wanted in (
        ((qrels, run, Ordering()), (qrels, run, Ordering("stable"))),
        ((qrels, run, Ordering()), (fewer, run, Ordering())),
        ((fewer, run, Ordering()), (qrels, run, Ordering())),
        ((qrels, other, Ordering()), (qrels, run, Ordering())),
    ):
        plain = scanned(*wanted)
        ahead.read_ahead(str(started[0]), str(started[1]), options(started[2]))
        assert same_hits(scanned(*wanted), plain)


@pytest.mark.parametrize("text", ["", "not a run\n", "q1 Q0 d7 1 2.5 t\nq2 Q0 d7 1 1 t\nq1 Q0 d14 2 1.5 t\n"])
def test_an_unusual_run_is_left_to_the_readers(files: tuple[Path, Path], tmp_path: Path, text: str) -> None:
    qrels, _ = files
    run = tmp_path / "odd.run"
    run.write_text(text)
    judged = Qrels.read(qrels).judged
    plain = scan_file(run, judged, Ordering())
    ahead.read_ahead(str(qrels), str(run), options(Ordering()))
    found = scan_file(run, judged, Ordering())
    assert (found is None) == (plain is None)
    assert plain is None or (found is not None and same_hits(found, plain))


def test_missing_files_are_ignored(files: tuple[Path, Path], tmp_path: Path) -> None:
    qrels, run = files
    ahead.read_ahead(str(tmp_path / "none"), str(run), options(Ordering()))
    ahead.read_ahead(str(qrels), str(tmp_path), options(Ordering()))
    assert not ahead._started


def test_an_unused_result_is_discarded(files: tuple[Path, Path]) -> None:
    qrels, run = files
    for _ in range(20):
        ahead.read_ahead(str(qrels), str(run), options(Ordering()))
    ahead._started.clear()
