"""LegalizeOps: calls of operators become calls of kernels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol
from unity.ir.dtype import Array
from unity.ir.graph import (
    Call,
    CallTir,
    Constant,
    Expr,
    FunctionRef,
    Op,
    TupleGet,
    Var,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import size_var, symbol_of, to_dim, to_prim_expr
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.op.registry import ComputeArg, OpDef
from unity.op.table import OPS
from unity.te import Tensor, create_prim_func, placeholder

from ...passes import Context, Pass
from ..names import Names
from ..symbols import Renaming, hidden_symbols, tensor_fields
from ..views import VIEWS
from .given_away import OverwritingRewriter
from .inline_scalars import inline_scalars
from .legalization import Legalization, legalized
from .unit_axes import with_unit_axes
from .varied_scalars import varied_scalars
from .without_kernel import why_no_kernel


@dataclass(frozen=True, slots=True)
class LegalizeOps(Pass):
    """Turns every call of an op with a compute row into a `CallTir` of a prim func made from it.

    Sites that agree in op, attributes and argument types up to the names of symbols share one prim
    func, named after the op. Scalar constants become literals in the kernel, but those that differ
    from site to site (`varied_scalars.py`). Views (reshape and
    its kin) and ops without a compute row stay as they are.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    ...     return R.multiply(R.multiply(x, 2.0), 2.0)
    ... ''')
    >>> after = LegalizeOps()(before, Context())
    >>> print(print_module(after), end="")  # doctest: +NORMALIZE_WHITESPACE
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        multiply_1 = R.call_tir(multiply, (x,), out=f32[Tensor, n])
        multiply_2 = R.call_tir(multiply, (multiply_1,), out=f32[Tensor, n])
        return multiply_2
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func(attrs={"num_outputs": 1, "op": "multiply", "pattern": "broadcast",
                             "private": True})
    def multiply(x1: f32[Buffer, n], multiply_1: f32[Buffer, n]) -> None:
        for i0 in range(n):
            with T.block("multiply"):
                vi0 = T.axis.remap("S", i0)
                multiply_1[vi0] = x1[vi0] * 2.0

    Attributes:
        rules: Kernels to take before the ops' own; the first that applies.
    """

    rules: tuple[Legalization, ...] = ()

    @property
    def rules_followed(self) -> tuple[object, ...]:
        """What gives the kernels."""
        return tuple(r.rule for r in self.rules)

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions, with one table of kernels."""
        varied = varied_scalars(module.graph_functions().values())
        kernels = _Kernels(Names(module), self.rules, varied)
        functions = {
            name: _Legalizer(module, kernels).function(f)
            for name, f in module.graph_functions().items()
        }
        return module.with_({**functions, **kernels.made})


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A prim func of the module, and its extra sizes as numbered symbols."""

    name: str
    sizes: tuple[Symbol, ...]


@dataclass(slots=True)
class _Kernels:
    """Carries the kernels made so far, by what they compute."""

    names: Names
    rules: tuple[Legalization, ...] = ()
    varied: frozenset[str] = frozenset()
    made: dict[str, PrimFunc] = field(default_factory=dict[str, PrimFunc])
    known: dict[Hashable, _Kernel] = field(default_factory=dict[Hashable, _Kernel])


class _Legalizer(OverwritingRewriter):
    """Carries the kernels from function to function."""

    def __init__(self, module: IRModule, kernels: _Kernels) -> None:
        super().__init__(module)
        self.kernels = kernels

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return value
        op = OPS[value.callee.name]
        if op.compute is None or op.name in VIEWS or why_no_kernel(value, var.type) is not None:
            return value
        return self.call(op, value, var)

    def call(self, op: OpDef, call: Call, var: Var) -> CallTir:
        """The kernel call."""
        out = tensor_fields(var.type)
        assert out is not None
        types = [_known(a) for a in call.args]
        inputs = [
            (a, t) for a, t in zip(call.args, types, strict=True) if tensor_fields(t) is not None
        ]
        args = [part for a, t in inputs for part in self.parts(a, t)]
        scalars = {
            i: a
            for i, a in enumerate(args)
            if isinstance(a, Constant)
            and _is_scalar(a)
            and not (op.name in self.kernels.varied and a.data.dtype == np.float32)
        }
        in_place = self.in_place(op, args)
        kinds = [t for _, t in inputs]
        kernel, names = self.kernel(op, call.attrs, kinds, var.type, scalars, in_place)
        original = {number: symbol for symbol, number in names.items()}
        return CallTir(
            FunctionRef(kernel.name, call.span),
            tuple(a for i, a in enumerate(args) if i not in scalars),
            out,
            tuple(original[s] for s in kernel.sizes),
            (0,) if in_place else (),
            span=call.span,
        )

    def in_place(self, op: OpDef, args: Sequence[Expr]) -> bool:
        """Whether a call writes over its first argument."""
        return op.in_place is not None and self.may_overwrite(args[0])

    def parts(self, arg: Expr, t: Type) -> list[Expr]:
        """A tuple's fields as arguments of their own."""
        if isinstance(t, TensorType):
            return [arg]
        assert isinstance(t, TupleType)
        found: list[Expr] = []
        for i, inner in enumerate(t.fields):
            part = self.field(TupleGet(arg, i))
            if isinstance(part, TupleGet):
                part = self.emit(part, f"{arg.name if isinstance(arg, Var) else 'part'}_{i}")
            found += self.parts(part, inner)
        return found

    def kernel(
        self,
        op: OpDef,
        attrs: Attrs,
        inputs: Sequence[Type],
        result: Type,
        scalars: dict[int, Constant],
        in_place: bool,
    ) -> tuple[_Kernel, dict[Symbol, Dim]]:
        """The kernel of a site and how the site's symbols are numbered."""
        renaming = Renaming()
        key = (
            op.name,
            tuple(renaming.type(t) for t in inputs),
            renaming.type(result),
            renaming.attrs(attrs),
            tuple((i, c.data.tobytes()) for i, c in scalars.items()),
            in_place,
        )
        known = self.kernels.known.get(key)
        if known is None:
            values = {i: c.data for i, c in scalars.items()}
            func, hidden = self.made(op, attrs, inputs, result, values, in_place)
            name = self.kernels.names.fresh(op.name.rpartition(".")[2])
            self.kernels.made[name] = func
            sizes = [renaming.names[s] for s in hidden]
            known = _Kernel(name, tuple(s for s in sizes if isinstance(s, Symbol)))
            self.kernels.known[key] = known
        return known, renaming.names

    def made(
        self,
        op: OpDef,
        attrs: Attrs,
        inputs: Sequence[Type],
        result: Type,
        scalars: dict[int, Array],
        in_place: bool,
    ) -> tuple[PrimFunc, tuple[Symbol, ...]]:
        """A new kernel, and the symbols that it is given apart."""
        if in_place:
            func = make_in_place_kernel(op, attrs, inputs, result)
        else:
            args = _arguments(op, inputs)
            own = legalized(self.kernels.rules, op, args, attrs, result)
            if isinstance(own, PrimFunc):  # written out, with symbols of its own
                return inline_scalars(own, scalars), ()
            func = make_kernel(op, attrs, inputs, result) if own is None else _kernel(op, args, own)
        func = with_unit_axes(inline_scalars(func, scalars))
        hidden = _explicit_sizes(func, (*inputs, result))
        return replace(func, params=(*func.buffers, *map(size_var, hidden))), hidden


def make_kernel(op: OpDef, attrs: Attrs, inputs: Sequence[Type], result: Type) -> PrimFunc:
    """The prim func that an op's compute row gives for argument types.

    Args:
        op: An op with a compute row.
        attrs: The call's attributes.
        inputs: The types of its tensor arguments (tensors, or tuples of them), dims known.
        result: The result's type.
    """
    assert op.compute is not None
    args = _arguments(op, inputs)
    try:
        outputs = op.compute(args, attrs, result)
    except UnityError as error:
        raise UnityError(f"{op.name}: {error.message}", error.span, error.hint) from error
    return _kernel(op, args, _flat(outputs))


def _arguments(op: OpDef, inputs: Sequence[Type]) -> list[ComputeArg]:
    """A placeholder for each tensor argument of a call."""
    params = [p.name for p in op.params if p.kind in ("tensor", "tensors")]
    return [_placeholders(t, name) for t, name in zip(inputs, params, strict=False)]


def _kernel(op: OpDef, args: Sequence[ComputeArg], outputs: Sequence[Tensor]) -> PrimFunc:
    given = [t for a in args for t in _flat(a)]
    marks = Attrs(pattern=op.pattern, op=op.name, private=True)
    return create_prim_func([*given, *outputs], marks)


def make_in_place_kernel(op: OpDef, attrs: Attrs, inputs: Sequence[Type], result: Type) -> PrimFunc:
    """The prim func that writes an op's result over its first argument; it has no outputs.

    Args:
        op: An op with an in-place row.
        attrs: The call's attributes.
        inputs: The types of its tensor arguments, dims known.
        result: The result's type.
    """
    assert op.in_place is not None
    assert inputs[0] == result
    params = [p.name for p in op.params if p.kind == "tensor"]
    given = [_placeholders(t, name) for t, name in zip(inputs, params, strict=False)]
    buffers = [Buffer(t.name, t.shape, t.dtype) for a in given for t in _flat(a)]
    body = op.in_place(buffers, attrs)
    func = PrimFunc(tuple(buffers), body, Attrs(num_outputs=0, op=op.name, private=True))
    exprs = [e for s in walk_stmt(body) for x in stmt_exprs(s) for e in walk_prim(x)]
    sizes = {e for e in exprs if isinstance(e, SizeVar)} - set(size_params(func))
    return replace(func, params=(*func.params, *sorted(sizes, key=lambda s: s.name)))


def _placeholders(t: Type, name: str) -> ComputeArg:
    if isinstance(t, TensorType):
        assert isinstance(t.shape, tuple)
        assert t.dtype is not None
        return placeholder([to_prim_expr(d) for d in t.shape], t.dtype, name)
    fields = tensor_fields(t)
    assert fields is not None
    parts = [_placeholders(f, f"{name}_{i}") for i, f in enumerate(fields)]
    return tuple(p for p in parts if isinstance(p, Tensor))


def _flat(value: ComputeArg) -> tuple[Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)


def _known(arg: Expr) -> Type:
    found = atom_type(arg)
    assert found is not None, arg
    return found


def _is_scalar(c: Constant) -> bool:
    return c.data.size == 1 and c.data.dtype.kind in "fiub"


def _explicit_sizes(func: PrimFunc, types: Sequence[Type]) -> tuple[Symbol, ...]:
    """The symbols that must be parameters: no shape gives them, or only within a larger formula."""
    given: list[Type] = []
    for buffer in func.buffers:
        dims = [to_dim(extent) for extent in buffer.shape]
        given.append(TensorType(tuple(d for d in dims if d is not None), buffer.dtype))
    named = {symbol_of(p) for p in func.params if isinstance(p, SizeVar)}
    return tuple(sorted(named | set(hidden_symbols(types, given)), key=lambda s: s.name))
