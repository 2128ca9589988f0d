"""PlanMemory: what lives only inside a function shares one arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import Dim, Symbol, evaluate, product, symbols_of
from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    Expr,
    Function,
    Op,
    ShapeValue,
    Tuple,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.symbols.representative import representative
from unity.ir.types import ObjectType, TensorType
from unity.ir.visit import type_symbols, walk_bindings

from ...passes import Context, Pass, Sight
from ..rewriter import BodyRewriter
from ..symbols import shape_of
from .arena import Packing, pack, pack_tightly
from .liveness import KernelCall, Liveness, Storage
from .storage_groups import Group, Groups, placed, put_copies


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
    >>> from unity.transform.graph import LegalizeOps
    >>> from unity.transform.graph import LowerCalls
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
        without_copies: Whether tensors may lie in those that they are concatenated to or taken
            from, if that takes no more memory; kernels that only copy are left out then.
    """

    sees: ClassVar[Sight] = "signatures"

    in_place: bool = True
    without_copies: bool = True

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each graph function by itself; kernels that write in place are marked."""
        planner = _Planner(module, self.in_place, self.without_copies)
        functions = {
            name: planner.function(f, frozenset()) for name, f in module.graph_functions().items()
        }
        return module.with_({**functions, **planner.marked})


_TRIED = 32
"""Copies that are left out one by one, where not all of them can be."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """An arena, where each storage begins in it, and what became of kernel calls.

    Attributes:
        groups: What lies together.
        packing: The arena.
        dropped: The bindings of calls that have nothing left to do.
        overwriting: The kernels that write over an input somewhere.
    """

    groups: Sequence[Group]
    packing: Packing
    dropped: set[Var]
    overwriting: set[str]

    @property
    def offsets(self) -> Mapping[Var, Dim]:
        """Where each storage begins."""
        return placed(self.groups, self.packing.offsets)

    def packed_tightly(self) -> _Plan:
        """The plan that is carried out."""
        return replace(self, packing=pack_tightly([g.piece() for g in self.groups]))


class _Planner:
    """Carries what is known of each kernel."""

    def __init__(self, module: IRModule, in_place: bool, without_copies: bool) -> None:
        self.module = module
        self.in_place = in_place
        self.without_copies = without_copies
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
        plan = self.tightest(pieces, live)
        if not plan.groups and not inner:
            return f
        for name in plan.overwriting:
            kernel = self.kernel(name)
            self.marked[name] = replace(kernel, attrs=kernel.attrs.with_(noalias=False))
        arena = Var("arena", ObjectType())
        new = _Placer(self.module, arena, plan, inner).function(f)
        if not plan.groups:
            return new
        size = Call(Op("memory.alloc_arena"), (ShapeValue((plan.packing.size,)),))
        first = BindingBlock((VarBinding(arena, size),))
        return replace(new, body=Body(_merged(first, new.body.blocks), new.body.result))

    def tightest(self, pieces: list[Storage], live: Liveness) -> _Plan:
        """The plan that leaves out as many copies as it can without taking more memory."""
        plain = self.planned(pieces, live, frozenset())
        best = self.best(pieces, live, plain)
        found = best.packed_tightly()
        if best is not plain:  # chosen by a packing that may take more
            other = plain.packed_tightly()
            if not _at_most(found.packing.size, other.packing.size):
                return other
        return found

    def best(self, pieces: list[Storage], live: Liveness, plain: _Plan) -> _Plan:
        """The plan that leaves out as many copies as it can, given the one that leaves out none."""
        copying = [c.var for c in live.calls if "copies" in self.attrs(c.kernel)]
        if not self.without_copies or not copying:
            return plain
        most = plain.packing.size
        plan = self.planned(pieces, live, frozenset(copying))
        if _at_most(plan.packing.size, most):
            return plan
        plan = plain
        for var in copying[:_TRIED]:
            tried = self.planned(pieces, live, frozenset({*plan.dropped, var}))
            if _at_most(tried.packing.size, most):
                plan = tried
        return plan

    def planned(self, pieces: list[Storage], live: Liveness, copying: frozenset[Var]) -> _Plan:
        """Where storages go, those that may share memory together, call by call.

        Args:
            pieces: The storages.
            live: When they are in use.
            copying: Calls that are left out where parts can lie in the whole.
        """
        groups = Groups(pieces)
        dropped: set[Var] = set()
        overwriting: set[str] = set()
        for call in live.calls:
            if call.var in copying and put_copies(groups, self.copied(call, live, groups)):
                dropped.add(call.var)
                continue
            source, target = self.overwritten(call, live, groups)
            if not self.in_place or source is None or target is None:
                continue
            if groups.of(source) is groups.of(target) or groups.of(source).end > call.position:
                continue
            groups.put(target, source, 0)
            overwriting.add(call.kernel)
        found = groups.all()
        return _Plan(found, pack([g.piece() for g in found]), dropped, overwriting)

    def copied(
        self, call: KernelCall, live: Liveness, planned: Groups
    ) -> list[tuple[Storage, Storage, int]]:
        """What a kernel only moves: the part, the whole, and the bytes before the part."""
        marked = self.attrs(call.kernel).get("copies", ())
        found: list[tuple[Storage, Storage, int]] = []
        for entry in marked if isinstance(marked, tuple) else ():
            match entry:
                case (int() as part, int() as whole, int() as begin):
                    storages = [_storage(call.buffers[i], live) for i in (part, whole)]
                case _:
                    return []
            a, b = storages
            if a is None or b is None or a.var not in planned or b.var not in planned:
                return []
            assert a.type.dtype is not None
            found.append((a, b, begin * a.type.dtype.bytes))
        return found

    def overwritten(
        self, call: KernelCall, live: Liveness, planned: Groups
    ) -> tuple[Storage | None, Storage | None]:
        """An input that dies in this call and the output that may take its place."""
        kernel = self.module[call.kernel]
        if not isinstance(kernel, PrimFunc):  # an engine's: nothing is known of how it reads
            return None, None
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
            # So does another input that lies in it, or in which it lies.
            alone = dies and not any(
                other != var and other in planned and planned.of(live.storages[other]) is mine
                for mine in (planned.of(source),)
                for other in given
            )
            if alone and safe.issuperset(places) and source.type == output.type:
                return source, output
        return None, None

    def attrs(self, name: str) -> Attrs:
        """The attributes of what a kernel call calls: an engine's function has none of ours."""
        found = self.module[name]
        return found.attrs if isinstance(found, PrimFunc) else NO_ATTRS

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


def _at_most(size: Dim, other: Dim) -> bool:
    """Whether a size is no larger than another, at least where symbols are what is typical."""
    return representative(size) <= representative(other)


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
        plan: _Plan,
        closures: Mapping[Var, Function],
    ) -> None:
        super().__init__(module)
        self.arena = arena
        self.plan = plan
        self.offsets = plan.offsets
        self.closures = closures

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if isinstance(value, Function):
            return self.closures.get(var, value)
        if var in self.plan.dropped:
            return Tuple(())
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
