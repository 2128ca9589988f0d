"""Sequences: what makes, changes and reads them.

SequenceMap is the Loop that ONNX defines it as (`..expand`), which is written out where the length
of its sequences is known (`..flow.loop`).
"""

from __future__ import annotations

import onnx

from unity.errors import UnityError
from unity.frontend.run_time import ragged as at_run_time
from unity.frontend.run_time.ragged import ItemKind, Ragged
from unity.frontend.run_time.slicing import run_of
from unity.frontend.run_time.vectors import Ints, bound, vector_of
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, as_dim
from unity.ir.dtype import INT64
from unity.ir.graph import Expr, Tuple

from ..node import Converter, Node, Outcome, Value
from ..reading.tensors import dtype_of
from .held import Listed, listed, ragged, tensor_of


def _sequence(node: Node, index: int) -> Listed | Ragged:
    held = node.outcome(index)
    if not isinstance(held, Listed | Ragged):
        raise UnityError(f"its input {index} is no sequence")
    return held


def _empty(node: Node) -> Outcome:
    code = node.int_of("dtype", onnx.TensorProto.FLOAT)
    return Listed(ItemKind(dtype_of(code, "a sequence")))


def _construct(node: Node) -> Outcome:
    return listed(node, tuple(node.value(k) for k in range(node.count)))


def _place(node: Node, index: int, length: int, *, more: int = 0) -> int | None:
    """A position in a sequence of known length; None if only running tells it."""
    array = node.constant(index)
    if array is None:
        return None
    if array.size != 1:
        raise UnityError(f"a position must be one number, got shape {array.shape}")
    at = int(array.reshape(()))
    if not -length <= at < length + more:
        raise UnityError(f"position {at} is not in a sequence of {length}")
    return at % length if at < 0 else at


def _insert(node: Node) -> Outcome:
    old, new = _sequence(node, 0), node.value(1)
    if isinstance(old, Listed):
        at = _place(node, 2, len(old.items), more=1) if node.has(2) else len(old.items)
        if at is not None:
            return listed(node, (*old.items[:at], new, *old.items[at:]), old.kind)
    return at_run_time.inserted(node, ragged(node, old), node.tensor(1), node.optional(2))


def _erase(node: Node) -> Outcome:
    old = _sequence(node, 0)
    if isinstance(old, Listed):
        if not old.items:
            raise UnityError("takes an item from an empty sequence")
        at = _place(node, 1, len(old.items)) if node.has(1) else len(old.items) - 1
        if at is not None:
            return Listed(old.kind, (*old.items[:at], *old.items[at + 1 :]))
    return at_run_time.erased(node, ragged(node, old), node.optional(1))


def _at(node: Node) -> Value:
    held = _sequence(node, 0)
    if isinstance(held, Listed):
        at = _place(node, 1, len(held.items))
        if at is not None:
            return held.items[at]
    return at_run_time.item(node, ragged(node, held), node.tensor(1))


def _length(node: Node) -> Value:
    held = _sequence(node, 0)
    return sizes_of(len(held.items) if isinstance(held, Listed) else held.count(node))


def _concat(node: Node) -> Value:
    """All items joined along an axis, or stacked along a new one."""
    held = _sequence(node, 0)
    axis, new = node.int_of("axis", 0), bool(node.int_of("new_axis", 0))
    if isinstance(held, Ragged):
        join = at_run_time.stacked if new else at_run_time.joined
        return join(node, held, axis)
    if not held.items:
        raise UnityError("joins an empty sequence")
    items = [tensor_of(node, one) for one in held.items]
    first = node.shape_of(items[0])
    rank = len(first) + new
    axis = node.axis(axis, rank)
    parts: list[Expr] = []
    for one in items:
        shape = node.shape_of(one)
        if len(shape) != len(first):
            raise UnityError(f"joins items of ranks {len(first)} and {len(shape)}")
        wanted = tuple(
            d if k == axis and not new else f
            for k, (d, f) in enumerate(zip(shape, first, strict=True))
        )
        one = one if wanted == shape else node.assert_shape(one, wanted)
        parts.append(node.op("expand_dims", one, axis=axis) if new else one)
    return parts[0] if len(parts) == 1 else node.op("concat", Tuple(tuple(parts)), axis=axis)


def _split(node: Node) -> Outcome:
    """Parts of given lengths, of one length (the last is shorter), or of 1."""
    x = node.tensor(0)
    shape = node.shape_of(x)
    axis = node.axis(node.int_of("axis", 0), len(shape))
    keeps = bool(node.int_of("keepdims", 1)) or node.has(1)
    extent = shape[axis]
    lengths = _known_lengths(node, extent)
    if lengths is not None:
        parts: list[Expr] = []
        start: Dim = 0
        for length in lengths:
            part = run_of(node, x, (axis,), (start,), (length,)) if len(lengths) > 1 else x
            parts.append(part if keeps else node.op("squeeze", part, axis=(axis,)))
            start = as_dim(start + length)
        return listed(node, tuple(parts), ItemKind(node.dtype_of(x)))
    return at_run_time.parted(node, x, axis, _lengths(node, extent), keeps_axis=keeps)


def _known_lengths(node: Node, extent: Dim) -> tuple[Dim, ...] | None:
    """The lengths of the parts, if their number is known."""
    if not node.has(1):
        return (1,) * extent if isinstance(extent, int) else None
    found = node.sizes(1)
    if found is None:
        return None
    if found.dims.ndim:
        total = as_dim(sum(found.flat))
        node.require(
            total, extent, "parts", "the lengths of the parts must add up to the axis that is split"
        )
        if any(isinstance(d, int) and d < 0 for d in found.flat):
            raise UnityError(f"a part of {found.flat} is negative")
        return found.flat
    (each,) = found.flat
    if not isinstance(each, int) or not isinstance(extent, int):
        return None
    if each < 1:
        raise UnityError(f"parts of length {each}")
    return tuple(min(each, extent - k) for k in range(0, extent, each))


def _lengths(node: Node, extent: Dim) -> Ints:
    """The lengths of the parts, whose number only running tells."""
    if not node.has(1):
        return Ints(node, node.op("ones", (extent,), dtype=INT64))
    given = node.run_time(1)
    if node.rank(1):
        return given
    whole = vector_of(node, (extent,)).element(0)
    (count,) = bound(node, -(-whole // given.most(1)), "parts")
    nth = Ints(node, node.op("arange", 0, count, 1, dtype=INT64))
    bound(node, given - 1, "length_less_one")
    return given.least(whole - nth * given)


CONVERTERS: dict[str, Converter] = {
    "ConcatFromSequence": _concat,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
