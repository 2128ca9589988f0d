"""LowerCalls: kernel calls get their destinations, views cost nothing: the `memory.*` form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from unity.errors import Span
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    CallEngine,
    CallTir,
    Expr,
    FunctionRef,
    Op,
    ShapeValue,
    Tuple,
    Var,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, TupleType, Type
from unity.te import compute, create_prim_func, placeholder

from ...passes import Context, Pass, Sight
from ..names import Names
from ..symbols import hidden_symbols, is_concrete, kernel_sizes, shape_of
from ..views import is_view
from .given_away import OverwritingRewriter

NOTHING = TupleType(())


@dataclass(frozen=True, slots=True)
class LowerCalls(Pass):
    """Replaces every `CallTir` by allocations and a ``memory.call_kernel``.

    Each output gets a tensor of its own here; `PlanMemory` moves those that stay inside the
    function into an arena. A view becomes a ``memory.reshape_view``. An output declared to alias an
    input gets a copy of it to write on, since inputs and constants are never written to; but for a
    tensor that was computed in the same body, or a parameter that was given away
    (`unity.ir.aliases`), and that nothing else uses.

    >>> from unity.script import parse, print_module
    >>> from .legalize import LegalizeOps
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 4, n]:
    ...     return R.reshape(R.exp(x), (4, n))
    ... ''')
    >>> after = LowerCalls()(LegalizeOps()(before, Context()), Context())
    >>> print(print_module(after.without("exp")), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 4, n]:
        exp = R.memory.alloc_tensor((n, 4), dtype="float32")
        done: R.Tuple() = R.memory.call_kernel(exp, (x, exp), (n,))
        reshape = R.memory.reshape_view(exp, (4, n))
        return reshape
    """

    sees: ClassVar[Sight] = "signatures"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions; order is meaning from here on, so no block is dataflow."""
        copies = _Copies(Names(module))
        functions = {
            name: _Lowerer(module, copies).function(f)
            for name, f in module.graph_functions().items()
        }
        return module.with_({**functions, **copies.made})


@dataclass(slots=True)
class _Copies:
    """Carries the kernels that copy, by the type copied."""

    names: Names
    made: dict[str, PrimFunc] = field(default_factory=dict[str, PrimFunc])
    known: dict[TensorType, str] = field(default_factory=dict[TensorType, str])

    def kernel(self, t: TensorType) -> str:
        """The name of a kernel that copies such a tensor."""
        if t not in self.known:
            assert t.dtype is not None
            x = placeholder([to_prim_expr(d) for d in shape_of(t)], t.dtype, "x")
            y = compute(x.shape, lambda *i: x[i], "copy")
            name = self.names.fresh("copy")
            marks = Attrs(pattern="elementwise", private=True)
            self.made[name] = create_prim_func([x, y], marks)
            self.known[t] = name
        return self.known[t]


class _Lowerer(OverwritingRewriter):
    """Carries the copy kernels."""

    def __init__(self, module: IRModule, copies: _Copies) -> None:
        super().__init__(module)
        self.copies = copies
        self._read_once: set[Expr] = set()

    def body(self, body: Body) -> Body:
        outer, self._read_once = self._read_once, set()
        new = super().body(body)
        self._read_once = outer
        if not any(block.dataflow for block in new.blocks):
            return new
        return Body(_plain(new.blocks), new.result)

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if isinstance(value, CallTir):
            made = self.kernel_call(value, var)
            if self.uses[var] == 1 and not isinstance(made, Tuple):
                self._read_once.add(made)
            return made
        if isinstance(value, CallEngine):
            return self.engine_call(value, var)
        concrete = isinstance(var.type, TensorType) and is_concrete(var.type)
        if isinstance(value, Call) and is_view(value) and concrete:
            shape = ShapeValue(shape_of(var.type))
            return Call(Op("memory.reshape_view"), (value.args[0], shape), span=value.span)
        return value

    def kernel_call(self, call: CallTir, var: Var) -> Expr:
        """Allocate, call, and give the destinations."""
        kernel = self.module[call.callee.name]
        assert isinstance(kernel, PrimFunc)
        args = list(call.args)
        made: list[Expr] = []
        results: list[Expr] = []
        for out, source in zip(call.out, call.inplace or (-1,) * len(call.out), strict=True):
            buffer = kernel.buffers[len(call.args) + len(made)].name if source < 0 else var.name
            name = f"{var.name}_{buffer}" if results else var.name
            if source >= 0 and self.may_write_to(args[source]):
                results.append(args[source])
                continue
            target = self.allocate(out, name, call.span)
            results.append(target)
            if source < 0:
                made.append(target)
            else:
                assert isinstance(out, TensorType)
                self.copy(args[source], out, target, call.span)
                args[source] = target
        self.call(call.callee, kernel, (*args, *made), call.sym_args, call.span)
        return results[0] if len(results) == 1 else Tuple(tuple(results), call.span)

    def may_write_to(self, e: Expr) -> bool:
        """Whether nothing else reads a tensor that a kernel writes to."""
        return e in self._read_once or self.may_overwrite(e)

    def engine_call(self, call: CallEngine, var: Var) -> Expr:
        """The same for an engine's function, which is told the dims of all its tensors."""
        several = len(call.out) > 1
        made: list[Expr] = [
            self.allocate(t, f"{var.name}_{i}" if several else var.name, call.span)
            for i, t in enumerate(call.out)
        ]
        buffers = (*call.args, *made)
        dims = [d for b in buffers for d in shape_of(_type(b))]
        args = (call.subgraph, Tuple(buffers), ShapeValue(tuple(dims)))
        self.emit(Call(Op("memory.call_kernel"), args, span=call.span), "done", call.span, NOTHING)
        return made[0] if len(made) == 1 else Tuple(tuple(made), call.span)

    def allocate(self, t: Type, name: str, span: Span | None) -> Var:
        """A new tensor."""
        assert isinstance(t, TensorType)
        assert t.dtype is not None
        shape = ShapeValue(shape_of(t))
        value = Call(Op("memory.alloc_tensor"), (shape,), Attrs(dtype=t.dtype), span)
        return self.emit(value, name, span, t)

    def copy(self, source: Expr, t: TensorType, target: Expr, span: Span | None) -> None:
        """Copy a tensor into a new one."""
        name = self.copies.kernel(t)
        kernel = self.copies.made[name]
        sizes = hidden_symbols([t], [t])
        self.call(FunctionRef(name), kernel, (source, target), sizes, span)

    def call(
        self,
        ref: FunctionRef,
        kernel: PrimFunc,
        buffers: Sequence[Expr],
        sym_args: Sequence[Dim],
        span: Span | None,
    ) -> None:
        """Emit a kernel call on all its buffers."""
        types = [atom_type(b) for b in buffers]
        sizes = kernel_sizes(kernel, [t for t in types if t is not None], sym_args)
        explicit = [p for p in kernel.params if not isinstance(p, Buffer)]
        scalars = [v for p, v in zip(explicit, sym_args, strict=True) if isinstance(p, PrimVar)]
        numbers = ShapeValue((*sizes.values(), *scalars))
        value = Call(Op("memory.call_kernel"), (ref, Tuple(tuple(buffers)), numbers), span=span)
        self.emit(value, "done", span, NOTHING)


def _type(e: Expr) -> Type:
    found = atom_type(e)
    assert found is not None, e
    return found


def _plain(blocks: Sequence[BindingBlock]) -> tuple[BindingBlock, ...]:
    return (BindingBlock(tuple(b for block in blocks for b in block.bindings)),)
