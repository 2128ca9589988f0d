"""FoldConstants: what is known at compile time is computed at compile time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.arrays.mapped import evict
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import SymDim
from unity.ir.dtype import INT64, Array, dtype
from unity.ir.graph import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    Var,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType, Type
from unity.ir.visit import walk_bindings
from unity.op.elementwise.quantize import is_of_weights
from unity.op.registry import OpDef, RefArg
from unity.op.table import OPS

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..symbols import tensor_fields

PRODUCTS = frozenset({"matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d"})
"""What reads weights as its second operand."""


@dataclass(frozen=True, slots=True)
class FoldConstants(Pass):
    """Computes calls of pure ops on constants by their references, and the values of shapes.

    ``shape_of`` becomes a shape value, symbolic or not; a branch on a constant becomes the branch
    taken. Weights are not dequantized here, but by `FoldQuantization`.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n, 2]) -> f32[Tensor, n, 2]:
    ...     y = R.add(x, R.negative(R.const([1.0, 2.0], "float32")))
    ...     return R.reshape(y, R.shape_of(x))
    ... ''')
    >>> print(print_module(FoldConstants()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 2]) -> f32[Tensor, n, 2]:
        y = R.add(x, R.const([-1.0, -2.0], "float32"))
        reshape = R.reshape(y, (n, 2))
        return reshape

    Attributes:
        limit: A result of more bytes is folded only if it is no larger than what it is made from,
            so that the program does not grow.
        weights: The same of what weights of products are made of, which lie in memory anyway.
    """

    limit: int = 1 << 16
    weights: int = 1 << 26

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Folder(module, self, _weights(f)).function(f))


def _weights(f: Function) -> frozenset[Var]:
    """What second operands of products are made of, where those follow from constants alone."""
    bindings = [*walk_bindings(f)]
    known, found = set[Var](), set[Var]()
    for binding in bindings:
        match binding.value:
            case Call(Op(), args) if all(isinstance(a, Constant) or a in known for a in args):
                known.add(binding.var)
            case _:
                pass
    for binding in reversed(bindings):
        match binding.value:
            case Call(Op(name), (_, Var() as weight)) if name in PRODUCTS and weight in known:
                found.add(weight)
            case Call(args=args) if binding.var in found:
                found.update(a for a in args if isinstance(a, Var))
            case _:
                pass
    return frozenset(found)


class _Folder(BodyRewriter):
    """Carries the limits, and what weights are made of."""

    def __init__(self, module: IRModule, of: FoldConstants, weights: frozenset[Var]) -> None:
        super().__init__(module)
        self.of = of
        self.weights = weights

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case If(Constant(data), then, orelse):
                taken = then if bool(data) else orelse
                self.splice(taken)
                return taken.result
            case Call(Op("shape_of"), (x,)):
                match atom_type(x):
                    case TensorType(tuple(dims)):
                        return ShapeValue(dims)
                    case _:
                        return value
            case Call(Op("scalar_tensor"), (PrimValue(SymDim() as size),)):
                values = Attrs({"values": size, "dtype": value.attrs["dtype"]})
                return Call(Op("dims"), (), values, value.span)
            case Call(Op("item"), (Constant(data),)):
                return PrimValue(data.item(), dtype(data.dtype), value.span)
            case Call(Op("shape_to_tensor"), (ShapeValue(dims),)) if not _static(value.args[0]):
                values = Attrs({"values": dims, "dtype": INT64})
                return Call(Op("dims"), (), values, value.span)
            case Call() if is_of_weights(value):
                return value  # whether they stay integers is for other passes to say
            case Call(Op(name)):
                most = self.of.weights if var in self.weights else self.of.limit
                return self.fold(OPS[name], value, var.type, most) or value
            case _:
                return value

    def fold(self, op: OpDef, call: Call, out: Type, most: int) -> Expr | None:
        """The result of a call, if it can be had in so many bytes."""
        if not op.pure or op.reference is None or any(map(_symbolic, call.attrs.values())):
            return None
        args = [_value(a) for a in call.args]
        known = [a for a in args if a is not None]
        if len(known) < len(args) or not (_fits(known, out, most) or isinstance(out, ShapeType)):
            return None
        with np.errstate(all="ignore"):
            result = op.reference(known, call.attrs)
        if isinstance(out, ShapeType):
            assert isinstance(result, tuple)
            return ShapeValue(tuple(int(d) for d in result))
        if isinstance(result, tuple):
            arrays = tuple(np.asarray(a) for a in result)
            found: Expr = Tuple(tuple(_constant(a, op, call) for a in arrays), call.span)
        else:
            found = _constant(result, op, call)
        for array in known:
            if isinstance(array, np.ndarray):
                evict(array)
        return found


def _fits(args: list[RefArg], out: Type, most: int) -> bool:
    """Whether the result is small enough to be kept."""
    size = 0
    for t in tensor_fields(out) or ():
        if not isinstance(t.shape, tuple) or t.dtype is None:
            return False
        count = 1
        for d in t.shape:
            if not isinstance(d, int):
                return False
            count *= d
        size += count * t.dtype.bytes
    return size <= max(most, sum(map(_bytes, args)))


def _value(e: Expr) -> RefArg | None:
    match e:
        case Constant(data):
            return data
        case PrimValue(bool() | int() | float() as number, kind):
            return np.asarray(number, kind.numpy)
        case ShapeValue(dims):
            known = tuple(d for d in dims if isinstance(d, int))
            return known if len(known) == len(dims) else None
        case Tuple(fields):
            arrays = tuple(f.data for f in fields if isinstance(f, Constant))
            return arrays if len(arrays) == len(fields) else None
        case _:
            return None


def _static(e: Expr) -> bool:
    return isinstance(e, ShapeValue) and all(isinstance(d, int) for d in e.dims)


def _symbolic(value: AttrValue) -> bool:
    if isinstance(value, tuple):
        return any(map(_symbolic, value))
    return isinstance(value, SymDim) and not isinstance(value, int)


def _bytes(arg: RefArg) -> int:
    if isinstance(arg, np.ndarray):
        return arg.nbytes
    return sum(a.nbytes for a in arg if isinstance(a, np.ndarray))


def _constant(data: Array, op: OpDef, call: Call) -> Constant:
    names = [a.name for a in call.args if isinstance(a, Constant) and a.name]
    name = f"{names[0]}_{op.name.rpartition('.')[2]}" if names else None
    return Constant(np.array(data, order="C", copy=None), name, call.span)
