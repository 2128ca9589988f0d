"""Operators of Relay's ``dyn`` namespace: what others have as attributes they take as tensors.

Where the tensors are known, as they are once shapes are, these are the others. Where only running
tells, sizes are new symbols, whose values the tensors' elements are (`unity.frontend.run_time`).
"""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.run_time.axes import squeezed as squeezed_at_run_time
from unity.frontend.run_time.axes import unsqueezed
from unity.frontend.run_time.padding import padded as padded_at_run_time
from unity.frontend.run_time.shapes import expanded as stretched
from unity.frontend.run_time.shapes import reshaped_to
from unity.frontend.run_time.slicing import sliced as sliced_at_run_time
from unity.frontend.run_time.vectors import Ints, bound, ints_of, length_of, places, vector_of
from unity.ir.dims import equal
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr
from unity.ir.types import Shape

from .creation import one_hot
from .image import resize, upsampled
from .ordering import sparse_to_dense, topk
from .padding import padded
from .shaping import expanded, reshaped_by_codes, squeezed, tiled
from .slicing import plain_slice, sliced


def _ints(c: RelayCall, index: int, what: str) -> tuple[int, ...]:
    return tuple(int(v) for v in c.known(index, what).reshape(-1))


def _dims(c: RelayCall, index: int, what: str) -> Shape:
    """An operand's elements: numbers or sizes if they are known, else new symbols."""
    known = c.dims(index)
    if known is not None:
        return known
    length_of(c, c.tensor(index), what)
    return bound(c, ints_of(c, c.tensor(index)), what.rpartition(" ")[2])


def _late(c: RelayCall, *indices: int) -> bool:
    """Whether one of some operands is known only at run time."""
    return any(c.constant(i) is None for i in indices if i < len(c.operands))


def _reshape(c: RelayCall) -> Expr:
    c.drop("newshape")
    c.only("reverse", False)
    zero = c.flag("allowzero")
    known = c.dims(1)
    if known is not None:
        return reshaped_by_codes(c, c.tensor(0), known, allows_zero=zero)
    # Of the codes 0 and -1 are known then; others are an error when it runs.
    target = ints_of(c, c.tensor(1))
    unknown = (None,) * length_of(c, target.value, "a shape")
    return reshaped_to(c, c.tensor(0), target, unknown, zero_is_zero=zero)


def _tile(c: RelayCall) -> Expr:
    c.drop("reps")
    return tiled(c, c.tensor(0), _dims(c, 1, "numbers of repeats"))


def _broadcast_to(c: RelayCall) -> Expr:
    c.drop("shape", "dtype")
    known = c.dims(1)
    if known is None or not _stretches(c, known):
        return stretched(c, c.tensor(0), ints_of(c, c.tensor(1)))
    return c.op("broadcast_to", c.tensor(0), known)


def _stretches(c: RelayCall, shape: Shape) -> bool:
    """Whether it is known that a tensor broadcasts to a shape."""
    old = c.shape_of(c.tensor(0))
    behind = shape[len(shape) - len(old) :]
    known = all(isinstance(d, int) for d in (*old, *behind))  # the type rule tells what is wrong
    return known or all(a == 1 or equal(a, b) for a, b in zip(old, behind, strict=False))


def _filled(value: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        c.drop("shape")
        kind = c.dtype_or("dtype", FLOAT32)
        return c.op("full", _dims(c, 0, "a shape"), Constant(np.asarray(value, kind.numpy)))

    return convert


def _full(c: RelayCall) -> Expr:
    c.drop("shape")
    value = c.tensor(0)
    kind = c.dtype_or("dtype", c.dtype_of(value))
    return c.op("full", _dims(c, 1, "a shape"), c.cast(value, kind))


def _one_hot(c: RelayCall) -> Expr:
    c.drop("depth")
    kind = c.dtype_or("dtype", c.dtype_of(c.tensor(1)))
    (depth,) = _dims(c, 3, "a depth")
    return one_hot(c, depth, c.integer("axis"), kind)


def _strided_slice(c: RelayCall) -> Expr:
    c.drop("begin", "end", "strides", "axes")
    mode = c.text("slice_mode")
    if _late(c, 1, 2, 3):
        return _sliced_late(c, mode)
    begin, end = _ints(c, 1, "where a slice begins"), _ints(c, 2, "where a slice ends")
    strides = _ints(c, 3, "the strides of a slice") if len(c.operands) > 3 else ()
    over = tuple(range(len(begin)))
    return sliced(c, c.tensor(0), over, begin, end, strides, mode)


def _strided_slice_of_any_form(c: RelayCall) -> Expr:
    """The plain operator, which before TVM 0.8 took its bounds as operands, too."""
    return _strided_slice(c) if len(c.operands) > 1 else plain_slice(c)


def _sliced_late(c: RelayCall, mode: str) -> Expr:
    """A slice some of whose bounds are known only at run time."""
    x = c.tensor(0)
    starts, ends = ints_of(c, c.tensor(1)), ints_of(c, c.tensor(2))
    count = length_of(c, starts.value, "begin")
    if count > c.rank() or length_of(c, ends.value, "end") != count:
        raise UnityError(f"begin and end don't fit a tensor of rank {c.rank()}")
    ones = Ints(c, Constant(np.ones(count, np.int64)))
    steps = ints_of(c, c.tensor(3)) if len(c.operands) > 3 and mode == "end" else ones
    if length_of(c, steps.value, "strides") != count:
        raise UnityError(f"strides don't fit {count} axes")
    if mode == "size":  # ends are extents, and what is less than 0 all that is left
        extents = vector_of(c, c.shape_of(x)[:count])
        starts = (starts < 0).choose(starts + extents, starts)
        ends = (ends < 0).choose(extents, starts + ends)
    elif mode != "end":
        raise UnityError(f"slice_mode must be 'end' or 'size', got {mode!r}")
    return sliced_at_run_time(c, x, range(count), starts, ends, steps)


def _sparse_to_dense(c: RelayCall) -> Expr:
    return sparse_to_dense(c, _dims(c, 3, "a shape"))


def _expand_dims(c: RelayCall) -> Expr:
    c.drop("axis")
    count = c.integer("num_newaxis")
    if not _late(c, 1):
        return expanded(c, c.tensor(0), int(c.scalar(1, "an axis")), count)
    if count < 1:
        return c.tensor(0)
    axis = ints_of(c, c.op("reshape", c.tensor(1), (1,)))
    first = (axis < 0).choose(axis + (c.rank() + 1), axis)
    return unsqueezed(c, c.tensor(0), first + places(c, count))


def _squeeze(c: RelayCall) -> Expr:
    c.drop("axis")
    if _late(c, 1):
        return squeezed_at_run_time(c, c.tensor(0), ints_of(c, c.tensor(1)))
    return squeezed(c, c.tensor(0), _ints(c, 1, "axes"))


def _topk(c: RelayCall) -> Expr:
    c.drop("k")
    if _late(c, 1):
        (most,) = bound(c, ints_of(c, c.tensor(1)), "count", least=1)
        return topk(c, most)
    return topk(c, int(c.scalar(1, "how many there are to be")))


def _pad(c: RelayCall) -> Expr:
    c.drop("pad_width", "pad_value")
    if _late(c, 1):
        return _padded_late(c)
    widths = _ints(c, 1, "how much to pad")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    if len(pairs) != c.rank():
        raise UnityError(f"pads {len(pairs)} axes of a tensor of rank {c.rank()}")
    value = c.tensor(2) if len(c.operands) > 2 else None
    return padded(c, c.tensor(0), pairs, c.text("pad_mode"), value)


def _padded_late(c: RelayCall) -> Expr:
    """A padding by widths, (rank, 2), that are known only at run time."""
    mode, fill = c.text("pad_mode"), c.tensor(2) if len(c.operands) > 2 else None
    if c.shape_of(c.tensor(1)) != (c.rank(), 2):
        raise UnityError(f"pad_width must be of the shape ({c.rank()}, 2)")
    if mode not in ("constant", "edge", "reflect"):
        raise c.gap(f"pad_mode={mode!r}")
    sides = [c.op("take", c.tensor(1), Constant(np.array(k, np.int64)), axis=1) for k in (0, 1)]
    bound(c, ints_of(c, c.op("reshape", c.tensor(1), (-1,))), "width")  # less than 0 is an error
    before, after = (ints_of(c, side) for side in sides)
    value = None if fill is None else c.cast(c.op("reshape", fill, ()), c.dtype_of(c.tensor(0)))
    found = padded_at_run_time(c, c.tensor(0), before, after, mode, value)
    sizes = tuple(c.sized(d, f"{c.label}_extent") for d in c.shape_of(found))
    return c.assert_shape(found, sizes)


def _resize2d(c: RelayCall) -> Expr:
    c.drop("size")
    return resize(c, _ints(c, 1, "a size"), 2)


def _upsampling(axes: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        c.drop(*(f"scale_{a}" for a in axes))
        return upsampled(c, [c.scalar(i, "a scale") for i in range(1, len(axes) + 1)])

    return convert


CONVERTERS: dict[str, Converter] = {
    "strided_slice": _strided_slice_of_any_form,
    "dyn.reshape": _reshape,
    "dyn.tile": _tile,
    "dyn.broadcast_to": _broadcast_to,
    "dyn.zeros": _filled(0),
    "dyn.ones": _filled(1),
    "dyn.full": _full,
    "dyn.one_hot": _one_hot,
    "dyn.strided_slice": _strided_slice,
    "dyn.sparse_to_dense": _sparse_to_dense,
    "dyn.expand_dims": _expand_dims,
    "dyn.squeeze": _squeeze,
    "dyn.topk": _topk,
    "dyn.nn.pad": _pad,
    "dyn.image.resize2d": _resize2d,
    "dyn.nn.upsampling": _upsampling("hw"),
    "dyn.nn.upsampling3d": _upsampling("dhw"),
}
