"""How much memory a piece of work took at its peak, where the system can tell."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

_STATM = Path("/proc/self/statm")
_PAGE = 4096
_EVERY = 0.01


class PeakMemory:
    """Samples the process's resident memory while it is open; `bytes` is the most above the start."""

    def __init__(self) -> None:
        self.bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        self._stop = threading.Event()
        self._start = _resident()
        self._peak = self._start
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        now = _resident()
        if self._start is not None and self._peak is not None and now is not None:
            self.bytes = max(self._peak, now) - self._start

    def _sample(self) -> None:
        while self._start is not None and not self._stop.wait(_EVERY):
            self._peak = max(self._peak or 0, _resident() or 0)


def _resident() -> int | None:
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None
