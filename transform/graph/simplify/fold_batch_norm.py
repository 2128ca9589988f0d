"""FoldBatchNorm: batch normalization by constants goes into the convolution before it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.registry import int_attr

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from ..uses import count_uses

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_TRANSPOSED = tuple(f"{name}_transpose" for name in _CONVOLUTIONS)
_Real = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoldBatchNorm(Pass):
    """``batch_norm(conv(x, w) + b)`` becomes ``conv(x, w * s) + (b * s + t)``.

    `s` and `t` are the normalization's scale and shift for each channel, computed in float64. A
    normalization that follows something else becomes ``x * s + t``. Results change within rounding.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 1, 4, 4]) -> f32[Tensor, 1, 1, 4, 4]:
    ...     y = R.nn.conv2d(x, R.const([[[[2.0]]]], "float32"))
    ...     gamma, beta = R.const([3.0], "float32"), R.const([1.0], "float32")
    ...     mean, variance = R.const([2.0], "float32"), R.const([4.0], "float32")
    ...     return R.nn.batch_norm(y, gamma, beta, mean, variance, epsilon=0.0)
    ... ''')
    >>> print(print_module(FoldBatchNorm()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 1, 1, 4, 4]) -> f32[Tensor, 1, 1, 4, 4]:
        y = R.nn.conv2d(x, R.const([[[[2.0]]]], "float32"))
        y_1 = R.nn.conv2d(x, R.const([[[[3.0]]]], "float32"))
        batch_norm = R.add(y_1, R.const([[[[-2.0]]]], "float32"))
        return batch_norm
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""

        def fold(f: Function) -> Function:
            return _Folder(module, count_uses(f.body)).function(f)

        return map_functions(module, fold)


class _Folder(BodyRewriter):
    """Carries how often each variable is used: only a convolution used once is rewritten."""

    def __init__(self, module: IRModule, uses: Counter[Var]) -> None:
        super().__init__(module)
        self.uses = uses

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, Call) or value.callee != Op("nn.batch_norm"):
            return value
        x, *params = value.args
        arrays = [p.data.astype(np.float64) for p in params if isinstance(p, Constant)]
        if len(arrays) < len(params) or not isinstance(var.type, TensorType):
            return value
        gamma, beta, mean, variance = arrays
        epsilon, axis, ndim = value.attrs["epsilon"], value.attrs["axis"], var.type.ndim
        if not isinstance(axis, int) or not isinstance(epsilon, float | int) or ndim is None:
            return value
        scale = gamma / np.sqrt(variance + epsilon)
        shift = beta - mean * scale
        shape = tuple(-1 if d == axis % ndim else 1 for d in range(ndim))
        return self.into_convolution(x, scale, shift, axis % ndim, value) or self.affine(
            x, scale.reshape(shape), shift.reshape(shape), value
        )

    def into_convolution(
        self, x: Expr, scale: _Real, shift: _Real, axis: int, call: Call
    ) -> Expr | None:
        """The convolution with scaled weights, if `x` is one, perhaps with a bias added."""
        bias: _Real | None = None
        made = self.only_use(x)
        if made is not None and made.callee == Op("add"):
            conv, added = made.args
            if not isinstance(added, Constant) or not _per_channel(added, axis, x):
                return None
            bias, x = added.data.astype(np.float64), conv
            made = self.only_use(x)
        if made is None or not isinstance(made.callee, Op) or axis != 1:
            return None
        transposed = made.callee.name in _TRANSPOSED
        weight = made.args[1] if transposed or made.callee.name in _CONVOLUTIONS else None
        if not isinstance(weight, Constant) or made.attrs["out_dtype"] is not None:
            return None
        rank = weight.data.ndim
        by = scale.reshape(-1, *(1,) * (rank - 1))
        if transposed:  # weights (c, o / groups, ...)
            groups = int_attr(made.attrs, "groups")
            by = np.repeat(scale.reshape(groups, -1), len(weight.data) // groups, axis=0)
            by = by.reshape(*by.shape, *(1,) * (rank - 2))
        scaled = _scaled(weight.data, by)
        folded = derived(weight, scaled, "folded")
        shape = (1, -1) + (1,) * (rank - 2)
        moved = shift.reshape(shape)
        if bias is not None:
            moved = moved + bias * scale.reshape(shape)
        new = Call(made.callee, (made.args[0], folded), made.attrs, made.span)
        y = self.emit(new, x.name if isinstance(x, Var) else "conv", made.span)
        offset = derived(weight, moved.astype(weight.data.dtype), "bias")
        return Call(Op("add"), (y, offset), span=call.span)

    def only_use(self, x: Expr) -> Call | None:
        """The call that made a variable used nowhere else."""
        made = self.values.get(x) if isinstance(x, Var) and self.uses[x] == 1 else None
        return made if isinstance(made, Call) else None

    def affine(self, x: Expr, scale: _Real, shift: _Real, call: Call) -> Expr:
        """``x * scale + shift``."""
        kind = atom_type(x)
        assert isinstance(kind, TensorType)
        if kind.dtype is None:
            return call
        s, t = (Constant(v.astype(kind.dtype.numpy), None, call.span) for v in (scale, shift))
        scaled = self.emit(Call(Op("multiply"), (x, s), span=call.span), "scaled", call.span)
        return Call(Op("add"), (scaled, t), span=call.span)


def _per_channel(bias: Constant, axis: int, x: Expr) -> bool:
    """Whether a constant has a value for each channel, the same everywhere else."""
    kind = atom_type(x)
    ndim = kind.ndim if isinstance(kind, TensorType) else None
    shape = bias.data.shape
    if ndim is None or len(shape) > ndim:
        return False
    aligned = (1,) * (ndim - len(shape)) + shape
    return all(n == 1 for d, n in enumerate(aligned) if d != axis)


def _scaled(weights: Array, scale: _Real) -> Array:
    """The weights times the scale; in their own precision, but for narrow floats."""
    wide = np.float32 if weights.dtype == np.float32 else np.float64
    product: Array = weights.astype(wide, copy=False) * scale.astype(wide)
    return product.astype(weights.dtype, copy=False)
