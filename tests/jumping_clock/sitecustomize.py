"""A clock that jumps, for every process of a test session: `pytest --jumping-clock`.

The time of day jumps by hours in both directions, as it does when a clock is set; the clocks that only go forward jump
ahead by seconds, as they do when a process gets no processor or a machine was suspended.
"""

from __future__ import annotations

import random
import time

_draw = random.Random(0)
_ahead = 0.0
_time, _monotonic, _perf_counter = time.time, time.monotonic, time.perf_counter


def _jumped() -> float:
    global _ahead
    _ahead += _draw.choice([0.0, 0.0, 0.0, 0.001, 0.1, 2.0])
    return _ahead


time.time = lambda: _time() + _draw.uniform(-20_000, 20_000)
time.monotonic = lambda: _monotonic() + _jumped()
time.perf_counter = lambda: _perf_counter() + _jumped()
