"""PlanMemory: what lives only inside a function shares one arena."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol, evaluate, product, symbols_of
from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    Expr,
    Function,
    Op,
    ShapeValue,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import ObjectType, TensorType
from unity.ir.visit import type_symbols, walk_bindings

from ..passes import Context, Pass
from .arena import Piece, pack
from .liveness import KernelCall, Liveness, Storage
from .rewriter import BodyRewriter
from .symbols import shape_of


@dataclass(frozen=True, slots=True)
class PlanMemory(Pass):
    """Puts tensors that do not outlive a call of their function into an arena.

    The arena is allocated once at the start; its size is a formula over the parameters' symbols.
    Tensors never in use together share bytes, and a kernel writes over an input that it is the last
    to read where `MarkInPlace` allows it. Results have storage of their own, and so have tensors
    that something else than a kernel sees, or whose size is not known when the function starts.
    Constants stay outside.

    A function may still return a parameter or a constant, or a view of one: the VM copies it then.

    >>> from unity.ir.dims import dim
    >>> from unity.script import parse, print_module
    >>> from .legalize import LegalizeOps
    >>> from .lower_calls import LowerCalls
    >>> from .mark_in_place import MarkInPlace
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, n, 8]:
    ...     y = R.matmul(R.exp(R.matmul(x, w)), w)
    ...     return R.matmul(y, w)
    ... ''')
    >>> kernels = MarkInPlace()(LegalizeOps()(before, Context()), Context())
    >>> after = PlanMemory()(LowerCalls()(kernels, Context()), Context())
    >>> print(print_module(after.without("matmul", "exp")), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, n, 8]:
        arena = R.memory.alloc_arena((n * 64 + 64,))
        matmul = R.memory.view(arena, (0,), (n, 8), dtype="float32")
        done: R.Tuple() = R.memory.call_kernel(matmul, (x, w, matmul), (n,))
        exp = R.memory.view(arena, (0,), (n, 8), dtype="float32")
        done_1: R.Tuple() = R.memory.call_kernel(exp, (matmul, exp), (n,))
        y = R.memory.view(arena, (((n * 32 + 63) // 64) * 64,), (n, 8), dtype="float32")
        done_2: R.Tuple() = R.memory.call_kernel(matmul, (exp, w, y), (n,))
        matmul_1 = R.memory.alloc_tensor((n, 8), dtype="float32")
        done_3: R.Tuple() = R.memory.call_kernel(matmul, (y, w, matmul_1), (n,))
        return matmul_1
    >>> peak_bytes(after.graph_functions()["main"], {dim("n"): 100})
    9664

    Attributes:
        in_place: Whether kernels may write over their inputs.
    """

    in_place: bool = True

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each graph function by itself; kernels that write in place are marked."""
        planner = _Planner(module, self.in_place)
        functions = {
            name: planner.function(f, frozenset()) for name, f in module.graph_functions().items()
        }
        return module.with_({**functions, **planner.marked})


class _Planner:
    """Carries what is known of each kernel."""

    def __init__(self, module: IRModule, in_place: bool) -> None:
        self.module = module
        self.in_place = in_place
        self.marked: dict[str, PrimFunc] = {}

    def function(self, f: Function, around: frozenset[Symbol]) -> Function:
        """A function, or a closure within symbols `around`, with its arena."""
        scope = around | {s for p in f.params for s in type_symbols(p.type)}
        live = Liveness()
        live.body(f.body)
        inner = {
            b.var: self.function(b.value, scope)
            for b in walk_bindings(f)
            if isinstance(b.value, Function)
        }
        pieces = [s for s in live.storages.values() if _fits(s, scope)]
        groups = self.shared(pieces, live) if self.in_place else [[s] for s in pieces]
        packing = pack([_piece(g) for g in groups])
        offsets = {
            s.var: offset for g, offset in zip(groups, packing.offsets, strict=True) for s in g
        }
        if not offsets and not inner:
            return f
        arena = Var("arena", ObjectType())
        new = _Placer(self.module, arena, offsets, inner).function(f)
        if not offsets:
            return new
        size = Call(Op("memory.alloc_arena"), (ShapeValue((packing.size,)),))
        first = BindingBlock((VarBinding(arena, size),))
        return replace(new, body=Body(_merged(first, new.body.blocks), new.body.result))

    def shared(self, pieces: list[Storage], live: Liveness) -> list[list[Storage]]:
        """The storages, those that are written over each other together, in order."""
        group_of = {s.var: [s] for s in pieces}
        for call in live.calls:
            source, target = self.overwritten(call, live, group_of)
            if source is None or target is None:
                continue
            a, b = group_of[source.var], group_of[target.var]
            if a is b or max(s.end for s in a) > call.position:
                continue
            a += b
            group_of.update((s.var, a) for s in b)
            kernel = self.kernel(call.kernel)
            self.marked[call.kernel] = replace(kernel, attrs=kernel.attrs.with_(noalias=False))
        seen: dict[int, list[Storage]] = {id(g): g for g in group_of.values()}
        return list(seen.values())

    def overwritten(
        self, call: KernelCall, live: Liveness, planned: Mapping[Var, object]
    ) -> tuple[Storage | None, Storage | None]:
        """An input that dies in this call and the output that may take its place."""
        kernel = self.kernel(call.kernel)
        safe = _overwritable(kernel)
        if not safe:
            return None, None
        output = _storage(call.buffers[len(kernel.buffers) - _outputs(kernel)], live)
        if output is None or output.var not in planned:
            return None, None
        given: dict[Var, list[int]] = {}
        for i, arg in enumerate(call.buffers):
            storage = _storage(arg, live)
            if storage is not None:
                given.setdefault(storage.var, []).append(i)
        for var, places in given.items():
            source = live.storages[var]
            dies = source.end == call.position and var in planned
            # A view of the storage may show other elements at the same index: shapes must agree.
            if dies and safe.issuperset(places) and source.type == output.type:
                return source, output
        return None, None

    def kernel(self, name: str) -> PrimFunc:
        """A kernel of the module."""
        found = self.module[name]
        assert isinstance(found, PrimFunc)
        return found


def _overwritable(kernel: PrimFunc) -> frozenset[int]:
    marked = kernel.attrs.get("overwritable", ())
    assert isinstance(marked, tuple)
    return frozenset(i for i in marked if isinstance(i, int))


def _outputs(kernel: PrimFunc) -> int:
    count = kernel.attrs.get("num_outputs", 1)
    assert isinstance(count, int)
    return count


def _storage(e: Expr, live: Liveness) -> Storage | None:
    return live.root(e) if isinstance(e, Var) else None


def _fits(storage: Storage, scope: frozenset[Symbol]) -> bool:
    return not storage.escapes and symbols_of(*shape_of(storage.type)) <= scope


def _piece(group: list[Storage]) -> Piece:
    first = group[0]
    assert first.type.dtype is not None
    start, end = min(s.start for s in group), max(s.end for s in group)
    return Piece(shape_of(first.type), first.type.dtype.bytes, start, end)


def _merged(first: BindingBlock, rest: tuple[BindingBlock, ...]) -> tuple[BindingBlock, ...]:
    if rest and not rest[0].dataflow:
        return (BindingBlock(first.bindings + rest[0].bindings), *rest[1:])
    return (first, *rest)


class _Placer(BodyRewriter):
    """Turns allocations into views of the arena."""

    def __init__(
        self,
        module: IRModule,
        arena: Var,
        offsets: Mapping[Var, Dim],
        closures: Mapping[Var, Function],
    ) -> None:
        super().__init__(module)
        self.arena = arena
        self.offsets = offsets
        self.closures = closures

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if isinstance(value, Function):
            return self.closures.get(var, value)
        if var not in self.offsets or not isinstance(value, Call):
            return value
        assert isinstance(var.type, TensorType)
        args = (self.arena, ShapeValue((self.offsets[var],)), value.args[0])
        return Call(Op("memory.view"), args, Attrs(dtype=var.type.dtype), value.span)


def arena_bytes(function: Function) -> Dim:
    """The size of a planned function's arena, a formula over its symbols; 0 if it needs none."""
    for binding in walk_bindings(function):
        match binding.value:
            case Call(Op("memory.alloc_arena"), (ShapeValue((size,)),)):
                return size
            case _:
                pass
    return 0


def peak_bytes(function: Function, symbols: Mapping[Symbol, int]) -> int:
    """The most memory that one call of a planned function takes: its arena and its results.

    Parameters, constants, small temporaries on kernels' stacks and what called functions take are
    not counted.

    Args:
        function: A function after `PlanMemory`.
        symbols: The values of its symbols.
    """
    total = evaluate(arena_bytes(function), symbols)
    for binding in walk_bindings(function):
        match binding.value:
            case Call(Op("memory.alloc_tensor"), (ShapeValue(dims),)):
                kind = binding.var.type
                assert isinstance(kind, TensorType)
                assert kind.dtype is not None
                total += evaluate(product(dims), symbols) * kind.dtype.bytes
            case _:
                pass
    return total
