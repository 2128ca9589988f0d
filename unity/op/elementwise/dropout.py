"""What training adds and a program that only infers leaves out: dropout; and relu6, a clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.graph import Expr, Tuple
from unity.ir.types import TupleType, Type
from unity.op.accumulate import unary
from unity.op.argument import float_tensor, tensor
from unity.op.attribute import NUMBER
from unity.op.registry import OpCall, OpDef, Param, Sample, array_arg, attr
from unity.op.sampling import Sampler, sample

from .unary import told

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_DROPOUT = (Param("x"), attr("rate", NUMBER, 0.5))
_X = (Param("x"),)


def _dropout_infer(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    if not 0 <= call.number("rate") < 1:
        raise call.error(f"'rate' must be at least 0 and below 1, got {call.attrs['rate']!r}")
    return TupleType((x, x))


def _dropout_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    return Tuple((args[0], e.op("ones_like", args[0])))


def _dropout_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_DROPOUT, (s.array((2, 3)),)),
        sample(_DROPOUT, (s.array((4,), "float16"),), rate=0.1),
    ]


def _relu6_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.dtype is not None and x.dtype.kind == "bool":
        raise call.error("a bool tensor has no order", hint='convert with astype(x, "float32")')
    return x


def _relu6_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    return e.op("clip", args[0], min=0, max=6)


def _relu6_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_X, (s.array((2, 3), low=-9, high=9),)),
        sample(_X, (s.array((5,), "int32", -9, 9),)),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.dropout",
        _DROPOUT,
        _dropout_infer,
        lambda args, attrs: (array_arg(args), np.ones_like(array_arg(args))),
        """x itself and a mask of ones: nothing is dropped outside of training (R.nn.dropout).

        A tuple of two of the shape and the float dtype of x, as Relax and ONNX Dropout give it.
        """,
        expand=_dropout_expand,
        samples=_dropout_samples,
    ),
    OpDef(
        "nn.relu6",
        _X,
        _relu6_infer,
        lambda args, attrs: unary(lambda x: np.clip(x, 0, 6), array_arg(args)),
        told("``min(max(x, 0), 6)`` (R.nn.relu6, torch's relu6).", "number"),
        expand=_relu6_expand,
        samples=_relu6_samples,
    ),
)
