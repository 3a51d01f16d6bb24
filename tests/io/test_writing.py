"""Files are written under a temporary name; one that a killed process left is removed by the next write."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from needs import not_on_windows
from steelyard.errors import InputError
from steelyard.io import files
from steelyard.io.files import hold, write_file

pytestmark = not_on_windows
NOW = 1_700_000_000


@pytest.fixture(autouse=True)
def time_of_the_test(monkeypatch):
    monkeypatch.setattr(files, "time", SimpleNamespace(time=lambda: float(NOW)))


def temporary_file(folder, name, age):
    path = folder / f".{name}.abc123_x.part"
    path.write_bytes(b"half")
    os.utime(path, (NOW - age, NOW - age))
    return path


def test_a_temporary_file_that_a_killed_process_left_is_removed(tmp_path):
    left = temporary_file(tmp_path, "a[1].html", 5)
    other = temporary_file(tmp_path, "b.html", 5)
    write_file(tmp_path / "a[1].html", b"whole")
    assert not left.exists()
    assert other.exists()
    assert (tmp_path / "a[1].html").read_bytes() == b"whole"


def test_the_temporary_file_of_a_running_process_is_kept(tmp_path):
    used, new = temporary_file(tmp_path, "a.html", 5), temporary_file(tmp_path, "a.html.b", 0)
    with used.open("rb") as file:
        assert hold(file)
        write_file(tmp_path / "a.html", b"whole")
    assert used.exists()
    assert new.exists()


def test_a_file_of_a_similar_name_is_the_users(tmp_path):
    mine = tmp_path / ".history.jsonl.mine.part"
    mine.write_bytes(b"mine")
    os.utime(mine, (NOW - 5, NOW - 5))
    write_file(tmp_path / "history.jsonl", b"whole")
    assert mine.read_bytes() == b"mine"


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "shared.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to("shared.jsonl")
    write_file(tmp_path / "link.jsonl", b"new")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "shared.jsonl").read_text() == "new"


def test_a_link_to_itself_is_an_error_and_stays(tmp_path):
    link = tmp_path / "loop"
    link.symlink_to(link)
    with pytest.raises(InputError, match="it is a link that leads to itself"):
        write_file(link, b"text")
    assert link.is_symlink()


def test_a_link_that_leads_nowhere_is_not_suggested_for_itself(tmp_path):
    link = tmp_path / "bm25.run"
    link.symlink_to(tmp_path / "nowhere")
    (tmp_path / "bm26.run").touch()
    with pytest.raises(InputError, match=r"no such file. Did you mean bm26.run\?$"):
        files.read_bytes(link)


def test_a_read_only_file_is_not_replaced(tmp_path):
    (tmp_path / "kept.txt").write_text("old")
    (tmp_path / "kept.txt").chmod(0o444)
    with pytest.raises(InputError, match=r"kept\.txt: is read-only"):
        write_file(tmp_path / "kept.txt", b"new")
    assert (tmp_path / "kept.txt").read_text() == "old"
