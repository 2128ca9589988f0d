"""`SimplifyInference`: batch norms become a product and a sum, dropouts nothing.

The other normalizations stay: they have kernels here that compute them at once.

>>> from unity import relay
>>> x = relay.var("x", shape=(2, 3, 4, 4))
>>> mod = relay.IRModule.from_expr(relay.nn.relu(relay.nn.dropout(x)))
>>> print(relay.transform.SimplifyInference()(mod))
#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3, 4, 4), float32]) {
  %0 = nn.relu(%x);
  %0
}
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unity.frontend.relay import syntax
from unity.frontend.relay.calls import operator_call
from unity.ir.dtype import FLOAT32
from unity.ir.types import TensorType
from unity.relay.inference import types_of

from .rewriting import called, each, rewritten


def simplify_inference(module: syntax.Module) -> syntax.Module:
    """A module without batch norms and dropouts whose first result is all that is read.

    Raises:
        UnityError: It is ill-typed.
    """
    kinds: Mapping[syntax.Expr, TensorType] | None = None

    def change(old: syntax.Expr, node: syntax.Expr) -> syntax.Expr:
        nonlocal kinds
        if not isinstance(node, syntax.TupleGetItem) or node.index != 0:
            return node
        call = node.tuple
        assert isinstance(old, syntax.TupleGetItem)
        if not isinstance(call, syntax.Call) or not isinstance(old.tuple, syntax.Call):
            return node
        if called(call) == "nn.dropout":
            return call.arguments[0]
        if called(call) != "nn.batch_norm":
            return node
        kinds = types_of(module) if kinds is None else kinds
        kind = kinds.get(old.tuple.arguments[0])
        return node if kind is None else _affine(call, kind)

    return each(module, lambda _, function: rewritten(function, change))


def _affine(call: syntax.Call, kind: TensorType) -> syntax.Expr:
    """``x * scale + (beta - mean * scale)``, the scale ``gamma / sqrt(variance + epsilon)``."""
    x, gamma, beta, mean, variance = call.arguments
    given = call.attributes
    axis, epsilon = given["axis"], given["epsilon"]
    assert isinstance(axis, int)
    assert isinstance(epsilon, float)
    assert isinstance(kind.shape, tuple)
    rank, element = len(kind.shape), kind.dtype or FLOAT32

    def op(name: str, *args: syntax.Expr, **attributes: syntax.AttrValue) -> syntax.Call:
        return operator_call(syntax.Op(name, call.span), args, attributes, call.span)

    def along(vector: syntax.Expr) -> syntax.Expr:
        after = rank - axis % rank - 1
        return op("expand_dims", vector, axis=1, num_newaxis=after) if after else vector

    small = np.array(epsilon, element.numpy)
    small.flags.writeable = False
    one = op("rsqrt", op("add", variance, syntax.Constant(small)))
    scale = op("multiply", one, gamma) if given["scale"] else one
    shift = op("negative", op("multiply", mean, scale))
    shift = op("add", shift, beta) if given["center"] else shift
    return op("add", op("multiply", x, along(scale)), along(shift))
