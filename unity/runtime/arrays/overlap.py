"""Arrays that share memory with one that is written to: results would depend on the order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array


def refuse_overlap(arrays: Sequence[tuple[str, Array]], written: Collection[int]) -> None:
    """Refuse arrays that one call is given where one of them is written to and meets another.

    Args:
        arrays: What each is called, and the array.
        written: Which of them are written to, by index.

    Raises:
        UnityError: There are such; the message names both.

    >>> x = np.zeros(6)
    >>> refuse_overlap([("'a'", x[:3]), ("'c'", x[3:])], {1})
    >>> try:
    ...     refuse_overlap([("'a'", x[:4]), ("'c'", x[3:])], {1})
    ... except UnityError as error:
    ...     print(error.message)
    'a' and 'c' share memory, and 'c' is written to
    """
    for k in sorted(written):
        name, array = arrays[k]
        for i, (other, each) in enumerate(arrays):
            if i != k and np.may_share_memory(array, each) and np.shares_memory(array, each):
                first, second = (other, name) if i < k else (name, other)
                raise UnityError(
                    f"{first} and {second} share memory, and {name} is written to",
                    hint="give a copy of one of them: array.copy()",
                )
