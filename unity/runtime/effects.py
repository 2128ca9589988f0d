"""What `print` and `assert` of graph functions do, for all that runs programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.errors import UnityError


def print_values(format: str, values: Sequence[object]) -> None:
    """Print values; see `text_of`.

    Raises:
        UnityError: The format does not fit them.
    """
    print(text_of(format, values))


def assertion_error(where: str, format: str, values: Sequence[object]) -> UnityError:
    """The error of a condition that does not hold.

    Args:
        where: The place in the program, or what is known of it.
        format: Of the message; empty if there is none.
        values: What it is made of.
    """
    message = text_of(format, values)
    place = f"{where}: " if where else ""
    return UnityError(f"{place}assertion failed" + (f": {message}" if message else ""))


def text_of(format: str, values: Sequence[object]) -> str:
    """Values as a format says; without one with spaces between. Arrays of rank 0 are numbers.

    Raises:
        UnityError: The format does not fit them.

    >>> text_of("{:.2f} of {}", [np.float32(0.125), (2, 3)]), text_of("", [1, "a"])
    ('0.12 of (2, 3)', '1 a')
    """
    plain = [_plain(v) for v in values]
    if not format:
        return " ".join(map(str, plain))
    try:
        return format.format(*plain)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise UnityError(f"the format {format!r} does not fit what is printed: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic) and value.shape == ():
        return value.item()
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
