"""Every format of the registry has its functions."""

from __future__ import annotations

from steelyard.io import list_formats


def test_every_format_has_the_functions_it_names() -> None:
    for entry in list_formats().values():
        assert entry.reads.keys() <= {"run", "qrels"}
        assert entry.writes.keys() <= entry.reads.keys(), entry.name
        for kind in entry.reads:
            assert callable(entry.reads[kind])
        for kind in entry.writes:
            assert callable(entry.writes[kind])
