"""Files are written under a temporary name; one that a killed process left is removed by the next write."""

from __future__ import annotations

import pytest

from needs import not_on_windows
from steelyard.errors import InputError
from steelyard.io import files
from steelyard.io.files import hold, write_file, written_atomically

pytestmark = not_on_windows


def temporary_file(folder, name):
    path = folder / f".{name}.abc123_x.part"
    path.write_bytes(b"half")
    return path


def test_a_temporary_file_that_a_killed_process_left_is_removed(tmp_path):
    left = temporary_file(tmp_path, "a[1].html")
    other = temporary_file(tmp_path, "b.html")
    write_file(tmp_path / "a[1].html", b"whole")
    assert not left.exists()
    assert other.exists()
    assert (tmp_path / "a[1].html").read_bytes() == b"whole"


def test_the_temporary_file_of_a_running_process_is_kept(tmp_path):
    with written_atomically(tmp_path / "a.html") as file:
        file.write(b"first")
        write_file(tmp_path / "a.html", b"second")
        assert (tmp_path / "a.html").read_bytes() == b"second"
    assert (tmp_path / "a.html").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_without_locks_no_temporary_file_is_removed(tmp_path, monkeypatch):
    left = temporary_file(tmp_path, "a.html")
    monkeypatch.setattr(files, "hold", lambda file: None)
    write_file(tmp_path / "a.html", b"whole")
    assert left.exists()
    assert (tmp_path / "a.html").read_bytes() == b"whole"


@pytest.mark.parametrize("removed", [False, True])
def test_a_temporary_file_that_another_process_removes_before_it_is_held_is_made_again(tmp_path, monkeypatch, removed):
    made, others = [], []

    def taken_at_first(file):
        made.extend(tmp_path.glob(".a.html.*.part"))
        if len(made) == 1:
            others.append(made[0].open("r+b"))
            assert hold(others[0])
            if removed:
                made[0].unlink()
                others[0].close()
        return hold(file)

    monkeypatch.setattr(files, "hold", taken_at_first)
    write_file(tmp_path / "a.html", b"whole")
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_bytes() == b"whole"
    others[0].close()


def test_a_file_of_a_similar_name_is_the_users(tmp_path):
    mine = tmp_path / ".history.jsonl.mine.part"
    mine.write_bytes(b"mine")
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
