"""The pytest plugin: a fixture that checks a result against rules and a baseline, and fails with the numbers.

    def test_retrieval(steelyard_gate):
        steelyard_gate("results/", rules=["nDCG@10 >= 0.40"], baseline="baseline.json")

pytest imports this module at every start, so it imports nothing else until the fixture is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steelyard.gating.result import GateResult


@pytest.fixture
def steelyard_gate(pytestconfig: pytest.Config) -> Callable[..., GateResult]:
    """Check a result against rules and a baseline: `steelyard_gate(result, rules, baseline=...)`.

    The parameters are those of `steelyard.gate`; it returns the GateResult if the gate passes. Paths are
    relative to the working directory, or to the root folder of pytest.
    """

    def located(source: Any) -> Any:
        if isinstance(source, (str, Path)) and not Path(source).exists():
            beside = pytestconfig.rootpath / source
            return beside if beside.exists() else source
        return source

    def gate(result: Any, rules: Any = (), *, baseline: Any = None, **options: Any) -> GateResult:
        __tracebackhide__ = True
        from steelyard.errors import SteelyardError
        from steelyard.gating.checking import gate

        try:
            checked = gate(located(result), rules, baseline=located(baseline), **options)
        except SteelyardError as error:
            pytest.fail(f"The gate cannot be checked: {error}", pytrace=False)
        if not checked.passed:
            pytest.fail(checked.to_text(), pytrace=False)
        if checked.verdict == "undecided":
            warnings.warn(checked.to_text(), stacklevel=2)
        return checked

    return gate
