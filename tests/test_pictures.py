"""The pictures of the documentation show the present report page and the present output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clocks import with_fixed_latencies
from needs import ON_WINDOWS, not_on_windows

if not ON_WINDOWS:
    from scripts import pictures
    from scripts.terminal import Screen

ROOT = Path(__file__).parent.parent
LARGEST = 250_000


def made_from():
    return json.loads(pictures.MADE_FROM.read_text("utf-8"))


@not_on_windows
def test_the_pictures_are_as_new_as_the_page():
    assert made_from()["sources"] == pictures.fingerprint(), (
        "the report page or the demo was changed after docs/images was made: run `make pictures`"
    )


@not_on_windows
def test_the_fingerprint_depends_on_every_source(tmp_path, monkeypatch):
    for folder in pictures.SOURCES:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text("one", "utf-8")
    monkeypatch.setattr(pictures, "PACKAGE", tmp_path)
    before = pictures.fingerprint()
    for folder in pictures.SOURCES:
        (tmp_path / folder / "file").write_text("two", "utf-8")
        assert pictures.fingerprint() != before
        (tmp_path / folder / "file").write_text("one", "utf-8")
    assert pictures.fingerprint() == before


@not_on_windows
def test_every_picture_is_there_and_not_too_large():
    names = {*pictures.VIEWS, "terminal.svg", "made-from.json"}
    found = {path.name: path.stat().st_size for path in pictures.IMAGES.iterdir()}
    assert found.keys() == names
    assert {name: size for name, size in found.items() if size > LARGEST} == {}


@not_on_windows
def test_a_terminal_keeps_what_is_left_on_the_screen():
    screen = Screen(10)
    screen.write(
        "one\r\n\x1b[1mrunning 1\x1b[0m\r\nrunning 2\x1b[1A\r\x1b[2K\x1b[1B\r\x1b[2K\x1b[1Atwo\x1b[32m!\x1b[0m"
    )
    assert screen.text() == "one\ntwo!"
    assert [span[1:] for span in screen.lines()[1].spans()] == [("two", "", ""), ("!", "", "#7ee0b0")]
    screen.write("\r\n0123456789ab")
    assert screen.text().splitlines()[-2:] == ["0123456789", "ab"]


@not_on_windows
def test_the_terminal_picture_can_be_read_without_animation():
    screen = Screen(40)
    screen.write("a <leader>\r\nb")
    svg = pictures.terminal_svg(screen.lines())
    assert ">a &lt;leader&gt;</tspan>" in svg
    assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "opacity: 0" not in svg.replace("@keyframes shown { from { opacity: 0; } }", "")


@not_on_windows
@pytest.mark.slow
def test_the_pictures_show_the_present_result_of_the_demo(tmp_path):
    lines = [line.text for line in pictures.run_demo(tmp_path, with_fixed_latencies("demo"))]
    made = made_from()
    assert pictures.demo_means(tmp_path) == made["means"], "run `make pictures`"
    shown = lines[: pictures.MOST_LINES]
    assert pictures.masked(shown) == pictures.masked(made["terminal"]), "run `make pictures`"
