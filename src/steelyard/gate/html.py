"""A gate as an HTML fragment, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from steelyard.report.comparison_html import fragment, table_html

if TYPE_CHECKING:
    from steelyard.gate.result import GateResult


def gate_html(gate: GateResult) -> str:
    """The verdict, the table, and what to know about it."""
    said = "".join(f"<li>{escape(line)}</li>" for line in (gate.method, *gate.warnings) if line)
    return fragment(
        [f"<p><strong>{escape(gate.sentence)}</strong></p>", table_html(gate.table), f"<ul>{said}</ul>"]
    )
