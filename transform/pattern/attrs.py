"""Attributes that are written differently and mean the same."""

from __future__ import annotations

from unity.ir.attrs import AttrValue

WINDOW = frozenset({"strides", "padding", "dilation", "pool_size", "output_padding"})
"""Where one int stands for a tuple of it."""
AXES = frozenset({"axis", "axes"})
"""Where one int stands for a tuple of one, and negative ones count from the end ..."""
OF_THE_RESULT = frozenset({"expand_dims", "stack", "one_hot"})
"""... of the result in these ops, of the first operand in all others."""


def same_attr(op: str, name: str, want: AttrValue, given: AttrValue, rank: int | None) -> bool:
    """Whether two values of an attribute mean the same.

    Args:
        op: The operator.
        name: The attribute.
        want: One value.
        given: The other.
        rank: Of the operator's first operand, None if it is not known.

    >>> same_attr("nn.conv2d", "padding", 1, (1, 1, 1, 1), 4)
    True
    >>> same_attr("nn.softmax", "axis", -1, 2, 3), same_attr("expand_dims", "axis", -1, 2, 3)
    (True, False)
    >>> same_attr("split", "indices_or_sections", 2, (2,), 3)
    False
    """
    if want == given:
        return True
    a, b = _ints(want), _ints(given)
    if a is None or b is None or name not in WINDOW | AXES:
        return False
    if name in WINDOW:
        length = max(len(a), len(b))
        return _spread(a, want, length) == _spread(b, given, length)
    if rank is None or op in OF_THE_RESULT:
        return a == b
    return len(a) == len(b) and all((i - j) % rank == 0 for i, j in zip(a, b, strict=True))


def _ints(value: AttrValue) -> tuple[int, ...] | None:
    items = value if isinstance(value, tuple) else (value,)
    found = tuple(i for i in items if isinstance(i, int) and not isinstance(i, bool))
    return found if len(found) == len(items) else None


def _spread(items: tuple[int, ...], written: AttrValue, length: int) -> tuple[int, ...]:
    return items if isinstance(written, tuple) else items * length
