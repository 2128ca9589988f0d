"""Elements moved along an axis, round its end or back to front: roll, reverse_sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT64, Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import Type
from unity.op.argument import (
    axes,
    axis,
    int_tensor,
    require_equal,
    tensor,
    type_text,
)
from unity.op.attribute import INT, INTS
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    array_arg,
    attr,
    axes_attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

_ROLL = (Param("x"), attr("shift", INTS), attr("axis", INTS))
_REVERSE = (
    Param("x"),
    Param("seq_lengths"),
    attr("seq_axis", INT, 1),
    attr("batch_axis", INT, 0),
)


# roll


def _roll_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    shifts = call.ints("shift")
    if x.ndim is not None and len(axes(call, call.attrs["axis"], x.ndim, "axis")) != len(shifts):
        raise call.error(
            f"'shift' and 'axis' must name as many axes, got {call.attrs['shift']!r} and "
            f"{call.attrs['axis']!r}"
        )
    return x


def _shifts(attrs: Attrs, rank: int) -> dict[int, int]:
    value = attrs["shift"]
    given = value if isinstance(value, tuple) else (value,)
    shifts = [n for n in given if isinstance(n, int)]
    return dict(zip(axes_attr(attrs, "axis", rank), shifts, strict=True))


def _roll_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    by_axis = _shifts(attrs, x.ndim)

    def element(*i: PrimExpr) -> PrimExpr:
        at = [
            (k - by_axis[d]) % te.max_(x.shape[d], 1) if by_axis.get(d, 0) else k
            for d, k in enumerate(i)
        ]
        return x[tuple(at)]

    return te.compute(x.shape, element, "roll")


def _roll_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x = array_arg(args)
    by_axis = _shifts(attrs, x.ndim)
    return np.roll(x, tuple(by_axis.values()), tuple(by_axis))


def _roll_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    return [
        sample(_ROLL, (s.array((a, b)),), shift=1, axis=1),
        sample(_ROLL, (s.array((a, b), "int8"),), shift=(-1, 7), axis=(0, -1)),
        sample(_ROLL, (s.array((0, b)),), shift=1, axis=0),
    ]


# reverse_sequence


def _reverse_infer(call: OpCall) -> Type:
    x, lengths = tensor(call, 0), int_tensor(call, 1)
    if lengths.ndim not in (None, 1):
        raise call.error(f"'seq_lengths' must have rank 1, got {type_text(lengths)}")
    if x.ndim is None:
        return x
    along = axis(call, call.attrs["seq_axis"], x.ndim, "seq_axis")
    batch = axis(call, call.attrs["batch_axis"], x.ndim, "batch_axis")
    if along == batch:
        raise call.error(f"'seq_axis' and 'batch_axis' are both {along}")
    if isinstance(x.shape, tuple) and isinstance(lengths.shape, tuple):
        require_equal(call, lengths.shape[0], x.shape[batch], "the number of 'seq_lengths'")
    return x


def _reverse_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, lengths = args
    assert isinstance(x, te.Tensor)
    assert isinstance(lengths, te.Tensor)
    along, batch = int_attr(attrs, "seq_axis") % x.ndim, int_attr(attrs, "batch_axis") % x.ndim

    def element(*i: PrimExpr) -> PrimExpr:
        length = te.min_(te.cast(lengths[i[batch]], INT64), x.shape[along])
        place = te.select(te.cast(i[along], INT64) < length, length - 1 - i[along], i[along])
        return x[(*i[:along], place, *i[along + 1 :])]

    return te.compute(x.shape, element, "reverse_sequence")


def _reverse_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, lengths = (a for a in args if isinstance(a, np.ndarray))
    along, batch = int_attr(attrs, "seq_axis") % x.ndim, int_attr(attrs, "batch_axis") % x.ndim
    rows = np.moveaxis(x, (batch, along), (0, 1)).copy()
    for k, length in enumerate(lengths.astype(np.int64)):
        end = max(0, min(int(length), rows.shape[1]))
        rows[k, :end] = rows[k, :end][::-1]
    return np.ascontiguousarray(np.moveaxis(rows, (0, 1), (batch, along)))


def _reverse_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    return [
        sample(_REVERSE, (s.array((a, b)), s.array((a,), "int64", 0, b))),
        sample(
            _REVERSE,
            (s.array((b, a, c), "int32"), s.array((a,), "int32", 1, b + 2)),
            seq_axis=0,
            batch_axis=1,
        ),
        sample(_REVERSE, (s.array((a, 0, c)), s.array((a,), "int64", 0, 0))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "roll",
        _ROLL,
        _roll_infer,
        _roll_reference,
        "Elements moved on by `shift` along `axis`, the last to the front (numpy, torch.roll).",
        compute=_roll_compute,
        pattern="injective",
        samples=_roll_samples,
    ),
    OpDef(
        "reverse_sequence",
        _REVERSE,
        _reverse_infer,
        _reverse_reference,
        """The first ``seq_lengths[b]`` elements along `seq_axis` in reverse, of each batch b.

        A length above the extent is the extent, one below 0 is 0 (R.reverse_sequence, ONNX
        ReverseSequence).
        """,
        compute=_reverse_compute,
        pattern="injective",
        samples=_reverse_samples,
    ),
)
