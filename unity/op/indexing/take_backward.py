"""What the gradient of taken elements is of the tensor that they were taken from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import product
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import real, rounded
from unity.op.argument import axis, common_dtype, float_tensor, int_tensor, require_equal, type_text
from unity.op.attribute import INT
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

from .gather import clamped

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (Param("output_grad"), Param("x"), Param("indices"), attr("axis", INT, None))


def _infer(call: OpCall) -> Type:
    grad, x, indices = float_tensor(call, 0), float_tensor(call, 1), int_tensor(call, 2)
    kind = common_dtype(call, (grad, x))
    if x.ndim is None:
        return TensorType(None, kind)
    given = call.attrs["axis"]
    if given is None and x.ndim != 1:
        raise call.error(f"axis is needed to take from {type_text(x)}, whose rank is not 1")
    along = axis(call, 0 if given is None else given, x.ndim)
    if isinstance(x.shape, tuple) and isinstance(indices.shape, tuple):
        taken = (*x.shape[:along], *indices.shape, *x.shape[along + 1 :])
        if grad.ndim not in (None, len(taken)):
            raise call.error(f"'output_grad' must have rank {len(taken)}, got {type_text(grad)}")
        if isinstance(grad.shape, tuple):
            for d, (got, wanted) in enumerate(zip(grad.shape, taken, strict=True)):
                require_equal(call, got, wanted, f"'output_grad' along axis {d}")
    return TensorType(x.shape, kind)


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    grad, x, indices = args
    shape = e.shape_of(x)
    given = attrs["axis"]
    along = given % len(shape) if isinstance(given, int) else 0
    count = product(e.shape_of(indices))
    rows = (*shape[:along], count, *shape[along + 1 :])
    at = e.op(
        "reshape",
        e.cast(indices, INT64),
        tuple(count if d == along else 1 for d in range(len(shape))),
    )
    grad = e.widened(e.op("reshape", grad, rows))
    nothing = e.op("zeros", shape, dtype=e.dtype_of(grad))
    added = e.op(
        "scatter_elements", nothing, e.op("broadcast_to", at, rows), grad,
        axis=along, reduction="add",
    )  # fmt: skip
    return e.cast(added, e.dtype_of(x))


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    grad, x, indices = (a for a in args if isinstance(a, np.ndarray))
    given = attrs["axis"]
    along = given % x.ndim if isinstance(given, int) else 0
    at = clamped(indices, x.shape[along]).reshape(-1)
    rows = real(grad).reshape(*x.shape[:along], len(at), *x.shape[along + 1 :])
    found = np.zeros(x.shape)
    np.add.at(np.moveaxis(found, along, 0), at, np.moveaxis(rows, along, 0))
    return rounded(found, x)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    x = s.array((a, b))
    return [
        sample(_PARAMS, (s.array((c, b)), x, s.array((c,), "int64", -a, a - 1)), axis=0),
        sample(_PARAMS, (s.array((a, 2, c)), x, s.array((2, c), "int32", 0, b - 1)), axis=-1),
        sample(_PARAMS, (s.array((9,), "float64"), s.array((a,), "float64"),
                         s.array((9,), "int64", 0, a - 1))),
        sample(_PARAMS, (s.array((a,), "float16"), s.array((a, b), "float16"),
                         np.array(b - 1)), axis=1),
    ]  # fmt: skip


OPS: tuple[OpDef, ...] = (
    OpDef(
        "grad.take_backward",
        _PARAMS,
        _infer,
        _reference,
        """The gradient of `x` of ``take(x, indices, axis)``, whose result has `output_grad`.

        Each element of `output_grad` ``(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])`` is
        added where it was taken from; gives the shape and the float dtype of `x`
        (R.grad.take_backward).
        """,
        expand=_expand,
        samples=_samples,
    ),
)
