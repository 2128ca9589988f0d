"""Operators that give the same elements another shape or order, or join and part tensors."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.reshaping import reshaped
from unity.ir.dims import Dim, equal, product
from unity.ir.graph import Expr, Tuple
from unity.ir.types import Shape


def _reshape(c: RelayCall) -> Expr:
    allows_zero = c.flag("allowzero")
    c.only("reverse", False)
    return reshaped_by_codes(c, c.tensor(0), c.integers("newshape"), allows_zero=allows_zero)


def reshaped_by_codes(
    c: RelayCall, x: Expr, codes: Sequence[Dim], *, allows_zero: bool = False
) -> Expr:
    """A tensor of a shape in Relay's codes: see `decoded`."""
    wanted = decoded(c.shape_of(x), codes, allows_zero=allows_zero)
    return reshaped(c, x, wanted, copies=False)


def decoded(old: Shape, codes: Sequence[Dim], *, allows_zero: bool = False) -> Shape:
    """The shape that codes mean for a tensor of a shape; it may hold one -1.

    0 copies a dim (or is one), -1 is what is left over, -2 copies all that follow, -3 joins two,
    -4 splits one in the two that follow, one of which may be -1.

    Raises:
        UnityError: They don't fit the shape.
    """
    rest, found, at = list(codes), list[Dim](), 0

    def take() -> Dim:
        nonlocal at
        if at >= len(old):
            raise UnityError(f"newshape {tuple(codes)} copies more axes than {old} has")
        at += 1
        return old[at - 1]

    while rest:
        code = rest.pop(0)
        match code:
            case 0 if not allows_zero:
                found.append(take())
            case -2:
                found += old[at:]
                at = len(old)
            case -3:
                first = take()
                found.append(first * take())
            case -4:
                if len(rest) < 2:
                    raise UnityError(f"newshape {tuple(codes)} splits an axis in nothing")
                found += _split(take(), rest.pop(0), rest.pop(0))
            case -1:
                found.append(-1)
                at += 1
            case int() if code < 0:
                raise UnityError(f"newshape {tuple(codes)} holds {code}, which means nothing")
            case _:
                found.append(code)
                at += 1
    if sum(d == -1 for d in found) > 1:
        raise UnityError(f"newshape {tuple(codes)} leaves more than one axis open")
    return tuple(found)


def _split(extent: Dim, first: Dim, second: Dim) -> tuple[Dim, Dim]:
    if first == -1:
        first = extent // second if extent % second == 0 else 0
    if second == -1:
        second = extent // first if extent % first == 0 else 0
    if not equal(first * second, extent):
        raise UnityError(f"an axis of {extent} is not to be split in {first} and {second}")
    return first, second


def _reverse_reshape(c: RelayCall) -> Expr:
    """A reshape whose codes are read from the back."""
    x, codes = c.tensor(0), c.integers("newshape")
    c.only("allowzero", 0, False)
    c.drop("reverse")
    if -4 in codes:
        raise c.gap("a code -4 read from the back")
    wanted = decoded(tuple(reversed(c.shape_of(x))), tuple(reversed(codes)))
    return reshaped(c, x, tuple(reversed(wanted)), copies=False)


def _reshape_like(c: RelayCall) -> Expr:
    x, old, like = c.tensor(0), c.shape_of(c.tensor(0)), c.shape_of(c.tensor(1))
    lhs = _range(c, "lhs", len(old))
    rhs = _range(c, "rhs", len(like))
    wanted = (*old[: lhs[0]], *like[rhs[0] : rhs[1]], *old[lhs[1] :])
    return reshaped(c, x, wanted, copies=False)


def _range(c: RelayCall, side: str, rank: int) -> tuple[int, int]:
    first, last = c.integer(f"{side}_begin"), c.optional_integer(f"{side}_end")
    ends = [v + rank if v < 0 else v for v in (first, rank if last is None else last)]
    return ends[0], ends[1]


def _batch_flatten(c: RelayCall) -> Expr:
    first, *rest = c.shape_of(c.tensor(0))
    return c.reshaped(c.tensor(0), (first, product(rest)))


def _transpose(c: RelayCall) -> Expr:
    x, rank = c.tensor(0), c.rank()
    given = c.optional_integers("axes") or tuple(reversed(range(rank)))
    return c.transposed(x, [c.axis(a, rank) for a in given])


def _expand_dims(c: RelayCall) -> Expr:
    axis, count = c.integer("axis"), c.integer("num_newaxis")
    return expanded(c, c.tensor(0), axis, count)


def expanded(c: RelayCall, x: Expr, axis: int, count: int) -> Expr:
    """A tensor with some new axes of 1, the first at `axis` of the new shape's or the old one's."""
    shape = c.shape_of(x)
    at = axis if axis >= 0 else len(shape) + axis + 1
    if not 0 <= at <= len(shape):
        raise UnityError(f"axis {axis} is out of range for rank {len(shape)}")
    return c.op("reshape", x, (*shape[:at], *(1,) * count, *shape[at:]))


def _squeeze(c: RelayCall) -> Expr:
    return squeezed(c, c.tensor(0), c.optional_integers("axis"))


def squeezed(c: RelayCall, x: Expr, axes: tuple[int, ...] | None) -> Expr:
    """A tensor without axes of 1, all of them if none are given."""
    shape = c.shape_of(x)
    if axes is None:
        axes = tuple(i for i, d in enumerate(shape) if d == 1)
    over = tuple(c.axis(a, len(shape)) for a in axes)
    if not over:
        return x
    if any(not isinstance(shape[a], int) for a in over):
        x = c.assert_shape(x, tuple(1 if i in over else d for i, d in enumerate(shape)))
    return c.op("squeeze", x, axis=over)


def _concatenate(c: RelayCall) -> Expr:
    return joined(c, c.fields(0), c.integer("axis"))


def joined(c: RelayCall, parts: Sequence[Expr], axis: int) -> Expr:
    """Tensors joined along an axis; unknown dims elsewhere are asserted to be the same."""
    first = c.shape_of(parts[0])
    axis = c.axis(axis, len(first))
    aligned = [parts[0], *(_like(c, p, first, axis) for p in parts[1:])]
    return parts[0] if len(parts) == 1 else c.op("concat", aligned, axis=axis)


def _like(c: RelayCall, x: Expr, first: Shape, axis: int) -> Expr:
    shape = c.shape_of(x)
    if len(shape) != len(first):
        raise UnityError(f"joins tensors of ranks {len(first)} and {len(shape)}")
    wanted = tuple(
        d if i == axis or equal(d, w) or (isinstance(d, int) and isinstance(w, int)) else w
        for i, (d, w) in enumerate(zip(shape, first, strict=True))
    )
    return x if wanted == shape else c.assert_shape(x, wanted)


def _stack(c: RelayCall) -> Expr:
    parts = c.fields(0)
    axis = c.integer("axis")
    rank = len(c.shape_of(parts[0]))
    at = c.axis(axis, rank + 1)
    return joined(c, [expanded(c, p, at, 1) for p in parts], at)


def _split_tensor(c: RelayCall) -> Expr:
    x, rank = c.tensor(0), c.rank()
    axis = c.axis(c.integer("axis"), rank)
    given = c.attribute("indices_or_sections")
    where = given if isinstance(given, int) else c.integers("indices_or_sections")
    parts = c.op("split", x, indices_or_sections=where, axis=axis)
    count = where if isinstance(where, int) else len(where) + 1
    return Tuple(tuple(c.field(parts, i) for i in range(count)))


def _repeat(c: RelayCall) -> Expr:
    x, axis = c.tensor(0), c.optional_integer("axis")
    if axis is None:
        x = c.op("reshape", x, (product(c.shape_of(x)),))
    at = 0 if axis is None else c.axis(axis, c.rank())
    return c.op("repeat", x, repeats=c.integer("repeats"), axis=at)


def _tile(c: RelayCall) -> Expr:
    return tiled(c, c.tensor(0), c.integers("reps"))


def tiled(c: RelayCall, x: Expr, repeats: Sequence[Dim]) -> Expr:
    """A tensor repeated along its axes, the last of which the last number is for."""
    shape = c.shape_of(x)
    missing = len(repeats) - len(shape)
    if missing > 0:
        x = c.op("reshape", x, (*(1,) * missing, *shape))
    return c.op("tile", x, repeats=(*(1,) * -missing, *repeats))


def _reverse(c: RelayCall) -> Expr:
    return c.op("flip", c.tensor(0), axis=c.axis(c.integer("axis"), c.rank()))


def _broadcast_to(c: RelayCall) -> Expr:
    c.drop("dtype")
    return c.op("broadcast_to", c.tensor(0), c.integers("shape"))


def _broadcast_to_like(c: RelayCall) -> Expr:
    return c.op("broadcast_to", c.tensor(0), c.shape_of(c.tensor(1)))


def _collapse_like(c: RelayCall) -> Expr:
    return _collapsed(c, c.shape_of(c.tensor(1)))


def _collapse_to(c: RelayCall) -> Expr:
    c.drop("shape", "dtype")
    return _collapsed(c, tuple(int(d) for d in c.known(1, "a shape").reshape(-1)))


def _collapsed(c: RelayCall, target: Shape) -> Expr:
    """The sum over what `target` would be broadcast along to give the tensor."""
    x, shape = c.tensor(0), c.shape_of(c.tensor(0))
    front = len(shape) - len(target)
    kept = [front + i for i, d in enumerate(target) if d == 1 and not equal(shape[front + i], 1)]
    axes = (*range(front), *kept)
    if axes:
        x = c.op("sum", x, axis=axes, keepdims=True)
    return c.reshaped(x, target)


def _meshgrid(c: RelayCall) -> Expr:
    vectors, order = list(c.fields(0)), c.text("indexing")
    if order not in ("ij", "xy"):
        raise UnityError(f"indexing must be 'ij' or 'xy', got {order!r}")
    places = list(range(len(vectors)))
    if order == "xy" and len(places) > 1:
        places[:2] = 1, 0
    extents: list[Dim] = [1] * len(vectors)
    for vector, place in zip(vectors, places, strict=True):
        extents[place] = product(c.shape_of(vector))
    grids: list[Expr] = []
    for vector, place in zip(vectors, places, strict=True):
        flat = c.op(
            "reshape", vector, (*(1,) * place, extents[place], *(1,) * (len(places) - place - 1))
        )
        grids.append(c.op("broadcast_to", flat, tuple(extents)))
    return Tuple(tuple(grids))


CONVERTERS: dict[str, Converter] = {
    "reshape": _reshape,
    "contrib_reverse_reshape": _reverse_reshape,
    "reshape_like": _reshape_like,
    "nn.batch_flatten": _batch_flatten,
    "transpose": _transpose,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split_tensor,
    "repeat": _repeat,
    "tile": _tile,
    "reverse": _reverse,
    "broadcast_to": _broadcast_to,
    "broadcast_to_like": _broadcast_to_like,
    "collapse_sum_like": _collapse_like,
    "collapse_sum_to": _collapse_to,
    "meshgrid": _meshgrid,
}
