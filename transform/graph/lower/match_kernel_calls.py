"""MatchKernelCalls: tensors given to a kernel are of its buffers' shapes, or checked to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, substitute, symbols_of
from unity.ir.graph import CallTir, Expr, Tuple, TupleGet, Var
from unity.ir.lattice import is_subtype
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import check_call
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import symbol_of, to_dim
from unity.ir.types import TensorType, Type

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..symbols import is_concrete, kernel_sizes, shape_of


@dataclass(frozen=True, slots=True)
class MatchKernelCalls(Pass):
    """Asserts, before each `CallTir`, of what shapes its tensors are, where types don't show it.

    A kernel reads and writes what its buffers' shapes say. Whether a tensor has that shape may be
    known at run time alone: of other symbols, or of unknown shape.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... m = dim("m")
    ... @script.prim_func
    ... def add(a: f32[Buffer, n], b: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         c[i] = a[i] + b[i]
    ... @script.function
    ... def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, n]:
    ...     z = R.call_tir(add, (x, y), out=f32[Tensor, n])
    ...     return z
    ... ''')
    >>> print(print_module(MatchKernelCalls()(before, Context()).without("add")), end="")
    m = dim("m")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, n]:
        b_of_add = R.match_cast(y, f32[Tensor, n])
        z = R.call_tir(add, (x, b_of_add), out=f32[Tensor, n])
        return z
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Matching(module).function(f))


class _Matching(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, CallTir):
            return value
        kernel = self.module[value.callee.name]
        assert isinstance(kernel, PrimFunc), value.callee
        return matched_call(self, value, kernel, value.callee.name)


def matched_call(rewriter: BodyRewriter, call: CallTir, kernel: PrimFunc, name: str) -> Expr:
    """A call of a kernel on tensors that are of its buffers' shapes.

    Args:
        rewriter: Binds what is asserted in front of the binding that it rewrites.
        call: The call.
        kernel: What is called.
        name: What messages call it.

    Returns:
        The call itself where the types show that it fits; else the value with its declared type.

    Raises:
        UnityError: It surely does not fit, or its sizes don't follow from the shapes.
    """
    at, args = call.span, [rewriter.infer(a) for a in call.args]
    sources = [*call.inplace, *(-1,) * (len(call.out) - len(call.inplace))]
    fresh = [t for t, source in zip(call.out, sources, strict=True) if source < 0]
    try:
        check_call(name, kernel, args, call.out, call.inplace)
        types = _expected(rewriter, kernel, [*args, *fresh], call.sym_args)
    except UnityError as error:
        raise UnityError(error.message, at, error.hint) from None
    called, made = call.callee.name, iter(types[len(args) :])
    out = tuple(types[source] if source >= 0 else next(made) for source in sources)
    given = tuple(
        arg
        if is_subtype(t, wanted)
        else rewriter.match_cast(arg, wanted, f"{b.name}_of_{called}", at)
        for arg, t, wanted, b in zip(call.args, args, types, kernel.buffers, strict=False)
    )
    if all(a is b for a, b in zip(given, call.args, strict=True)):
        given = call.args
    if all(map(is_subtype, out, call.out)):
        return call if given is call.args else replace(call, args=given)
    whole = rewriter.emit(replace(call, args=given, out=out), called, at)
    if len(out) == 1:
        return rewriter.match_cast(whole, call.out[0], f"result_of_{called}", at)
    fields = [rewriter.emit(TupleGet(whole, k), f"{called}_{k}", at) for k in range(len(out))]
    return Tuple(
        tuple(
            field
            if is_subtype(t, said)
            else rewriter.match_cast(field, said, f"{field.name}_is", at)
            for field, t, said in zip(fields, out, call.out, strict=True)
        ),
        at,
    )


def _expected(
    rewriter: BodyRewriter, kernel: PrimFunc, tensors: Sequence[Type], sizes: Sequence[Dim]
) -> tuple[TensorType, ...]:
    """The types of the kernel's buffers at a call: what its symbols are there, or new symbols.

    Raises:
        UnityError: A size can't be told.
    """
    shapes = [[to_dim(extent) for extent in b.shape] for b in kernel.buffers]
    bound: dict[Symbol, Dim] = {}
    explicit = [p for p in kernel.params if not isinstance(p, Buffer)]
    bound.update(
        (symbol_of(p), d) for p, d in zip(explicit, sizes, strict=True) if isinstance(p, SizeVar)
    )
    known = [t if isinstance(t, TensorType) and is_concrete(t) else None for t in tensors]
    for t, shape in zip(known, shapes, strict=True):
        for given, extent in zip(shape_of(t), shape, strict=True) if t is not None else ():
            if isinstance(extent, Symbol):
                bound.setdefault(extent, given)
    for t, shape in zip(known, shapes, strict=True):
        for extent in shape if t is None else ():
            if isinstance(extent, Symbol) and extent not in bound:
                bound[extent] = rewriter.fresh(extent.name)
    types = [
        TensorType(tuple(_at(d, bound) for d in shape), b.dtype) if t is None else t
        for t, shape, b in zip(known, shapes, kernel.buffers, strict=True)
    ]
    found = kernel_sizes(kernel, types, sizes)
    values = {symbol_of(p): d for p, d in found.items()}
    return tuple(
        TensorType(
            tuple(
                given if d is None else substitute(d, values)
                for d, given in zip(shape, shape_of(t), strict=True)
            ),
            b.dtype,
        )
        for t, shape, b in zip(types, shapes, kernel.buffers, strict=True)
    )


def _at(extent: Dim | None, bound: Mapping[Symbol, Dim]) -> Dim:
    """An extent of a buffer that a tensor of unknown shape is given for.

    Raises:
        UnityError: No other tensor tells what its symbols are.
    """
    if extent is None or not symbols_of(extent) <= bound.keys():
        raise UnityError(
            f"the shape of a tensor is not known, nor what {extent} is",
            hint="tell the tensor's shape by R.match_cast",
        )
    return substitute(extent, bound)
