"""Every kept input of the fuzzers is read, or refused with a SteelyardError."""

from __future__ import annotations

import random
import warnings

import pytest
from fuzz.readers import TARGETS, targets_in, try_input


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return {target.name: target for target in targets_in(tmp_path_factory.mktemp("fuzz"))}


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_and_some_mutations(targets, name, tmp_path):
    target, draw = targets[name], random.Random(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(len(target.seeds) + 5):
            try_input(target, target.input(draw), tmp_path)
    assert not target.findings
    # Inputs that are all refused test little.
    assert target.refused < target.tried
