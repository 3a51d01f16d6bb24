"""A number as some tool printed it: what it can stand for, and which values round to it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from steelyard.errors import InputError
from steelyard.reconciliation import SAME


class Printed(NamedTuple):
    """A number, and half of the last digit it was printed with."""

    value: float
    half: float

    def fits(self, value: float) -> bool:
        """Whether a value rounds to the number."""
        return abs(value - self.value) <= max(self.half * (1 + 1e-9), SAME)


def printed_as(value: str | float) -> list[Printed]:
    """What a printed number can stand for: itself, and a share if it is or may be a percentage."""
    text = str(value if isinstance(value, str) else float(value)).strip()
    percent = text.endswith("%")
    try:
        number = Decimal(text.rstrip("% "))
        digits = int(number.as_tuple().exponent)
    except (InvalidOperation, ValueError):
        raise InputError(
            f"the value is {value!r}; expected a number as it was printed, as in 0.4123 or 41.23%."
        ) from None
    half = Decimal(5).scaleb(digits - 1)
    plain = Printed(float(number), float(half))
    share = Printed(float(number.scaleb(-2)), float(half.scaleb(-2)))
    if percent:
        return [share]
    return [plain, share] if 1 < number <= 100 else [plain]
