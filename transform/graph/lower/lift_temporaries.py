"""LiftTemporaries: what kernels would allocate for themselves is handed to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.dims import Dim, substitute
from unity.ir.graph import CallTir, Expr, Tuple, TupleGet, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import Allocate, Buffer, PrimFunc, Stmt
from unity.ir.symbols.convert import symbol_of, to_dim
from unity.ir.types import TensorType, TupleType, Type

from ...passes import Context, Pass, Sight
from ..rewriter import BodyRewriter
from ..symbols import kernel_sizes


@dataclass(frozen=True, slots=True)
class LiftTemporaries(Pass):
    """Turns temporaries around a kernel's body into further outputs that nobody reads.

    Their memory is then planned with everything else, and a kernel allocates nothing while it runs.
    Small ones of known size stay: they are put on the stack. Only private kernels are changed,
    since others may be called from elsewhere. Runs after the schedule, which removes temporaries.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    ...     return R.call_tir(twice, (x,), out=f32[Tensor, n])
    ... @script.prim_func(attrs={"private": True})
    ... def twice(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    ...     t = T.alloc((n,), "float32")
    ...     for i in range(n):
    ...         t[i] = x[i] + x[i]
    ...     for i in range(n):
    ...         y[i] = t[i] + t[i]
    ... ''')
    >>> print(print_module(LiftTemporaries()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        lv = R.call_tir(twice, (x,), out=(f32[Tensor, n], f32[Tensor, n]))
        lv_1 = lv[0]
        return lv_1
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func(attrs={"num_outputs": 2, "private": True})
    def twice(x: f32[Buffer, n], y: f32[Buffer, n], t: f32[Buffer, n]) -> None:
        for i in range(n):
            t[i] = x[i] + x[i]
        for i in range(n):
            y[i] = t[i] + t[i]

    Attributes:
        stack: Bytes up to which a temporary stays.
    """

    sees: ClassVar[Sight] = "kernel"

    stack: int = 4096

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Kernels first, then their callers."""
        lifted: dict[str, tuple[Buffer, ...]] = {}
        kernels: dict[str, PrimFunc] = {}
        for name, f in module.prim_funcs().items():
            if not f.attrs.get("private"):
                continue
            body, found = self.split(f.body)
            if found:
                lifted[name] = found
                kernels[name] = _with_outputs(f, body, found)
        if not lifted:
            return module
        callers = {
            name: _Caller(module, lifted).function(f)
            for name, f in module.graph_functions().items()
        }
        return module.with_({**callers, **kernels})

    def split(self, body: Stmt) -> tuple[Stmt, tuple[Buffer, ...]]:
        """A kernel's body without its outermost allocations, and those that are lifted."""
        if not isinstance(body, Allocate):
            return body, ()
        inner, found = self.split(body.body)
        if self.is_lifted(body.buffer):
            return inner, (body.buffer, *found)
        return (body if inner is body.body else replace(body, body=inner)), found

    def is_lifted(self, buffer: Buffer) -> bool:
        """Whether a temporary is handed in: a large one, or one of a size that is a formula."""
        if buffer.scope != "global" or buffer.strides is not None or buffer.separators:
            return False
        size = buffer.dtype.bytes
        for extent in buffer.shape:
            value = to_dim(extent)
            if value is None:
                return False
            if not isinstance(value, int):
                return True
            size *= value
        return size > self.stack


def _with_outputs(kernel: PrimFunc, body: Stmt, new: tuple[Buffer, ...]) -> PrimFunc:
    scalars = tuple(p for p in kernel.params if not isinstance(p, Buffer))
    count = kernel.attrs.get("num_outputs", 1)
    assert isinstance(count, int)
    attrs = kernel.attrs.with_(num_outputs=count + len(new))
    return replace(kernel, params=(*kernel.buffers, *new, *scalars), body=body, attrs=attrs)


class _Caller(BodyRewriter):
    """Carries which temporaries became outputs of which kernel."""

    def __init__(self, module: IRModule, lifted: dict[str, tuple[Buffer, ...]]) -> None:
        super().__init__(module)
        self.lifted = lifted

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, CallTir) or value.callee.name not in self.lifted:
            return value
        out = (*value.out, *self.types(value))
        call = replace(value, out=out, inplace=_longer(value.inplace, len(out)))
        if len(value.out) > 1:
            return self.narrowed(call, len(value.out), var)
        return TupleGet(self.emit(call, var.name, value.span, TupleType(out)), 0)

    def narrowed(self, call: CallTir, count: int, var: Var) -> Expr:
        """The first results as a tuple of their own."""
        whole = self.emit(call, var.name, call.span, TupleType(call.out))
        fields = [self.emit(TupleGet(whole, i), f"{var.name}_{i}", call.span) for i in range(count)]
        return Tuple(tuple(fields), call.span)

    def types(self, call: CallTir) -> tuple[Type, ...]:
        """The types of a kernel's temporaries at a call."""
        kernel = self.module[call.callee.name]
        assert isinstance(kernel, PrimFunc)
        given = [atom_type(a) for a in call.args]
        made = [
            t for t, i in zip(call.out, call.inplace or (-1,) * len(call.out), strict=True) if i < 0
        ]
        tensors = [t for t in given if t is not None]
        sizes = kernel_sizes(kernel, [*tensors, *made], call.sym_args)
        return tuple(_type(b, sizes) for b in self.lifted[call.callee.name])


def _type(buffer: Buffer, sizes: dict[SizeVar, Dim]) -> TensorType:
    symbols = {symbol_of(s): d for s, d in sizes.items()}
    dims = [to_dim(extent) for extent in buffer.shape]
    return TensorType(tuple(substitute(d, symbols) for d in dims if d is not None), buffer.dtype)


def _longer(inplace: tuple[int, ...], count: int) -> tuple[int, ...]:
    return inplace and (*inplace, *(-1,) * (count - len(inplace)))
