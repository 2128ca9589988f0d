"""The innermost stores of a kernel that is laid out: the loops around each, and what it touches.

Sizes are numbers here: features and estimates are of one assignment of sizes. What an index does
when a loop steps is found by evaluating it, not by algebra: floor divisions of split loops come out
right where they matter, at the first steps. Each value is a vector: where all loops begin, then
with one loop after another a step ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import mul

import numpy as np
import numpy.typing as npt

from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import (
    Binary,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
)
from unity.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    IfThen,
    Let,
    PrimFunc,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import variables, walk_prim

Vector = npt.NDArray[np.int64]
Env = dict[PrimVar, Vector]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a store, with its extent as a number."""

    var: PrimVar
    extent: int
    kind: ForKind


@dataclass(frozen=True, slots=True)
class Access:
    """A load or the store of a leaf.

    Attributes:
        buffer: What it touches.
        stores: Whether it is the store.
        steps: For each loop, outermost first, how far each index moves when the loop steps. Loops
            around the buffer's allocation don't move it: each iteration has the same memory.
        shape: The buffer's, as numbers; of one that is allocated in a loop what an iteration needs.
        outer: How many loops are around the buffer's allocation.
    """

    buffer: Buffer
    stores: bool
    steps: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    outer: int = 0

    @property
    def local(self) -> bool:
        """Whether it is meant to lie in registers."""
        return self.buffer.scope == "local"

    @property
    def bytes(self) -> int:
        """Of an element."""
        return max(1, self.buffer.dtype.bits // 8)

    def elements(self, extents: tuple[int, ...]) -> list[int]:
        """How many elements are touched while the loops from each on run once, and while none do.

        Args:
            extents: Of the loops, outermost first.
        """
        reach, moving, found = [1] * len(self.shape), 1, [1]
        for step, extent in zip(reversed(self.steps), reversed(extents), strict=True):
            if any(step):
                moving *= extent
                reach = [r + abs(s) * (extent - 1) for r, s in zip(reach, step, strict=True)]
            within = prod(map(min, self.shape, reach))
            found.append(min(within, moving))
        found.reverse()
        return found

    def strides(self) -> list[int]:
        """How far apart, in elements, neighbours along each loop lie."""
        sizes = [1]
        for extent in reversed(self.shape[1:]):
            sizes.append(sizes[-1] * max(1, extent))
        sizes.reverse()
        return [abs(sum(map(mul, step, sizes))) for step in self.steps]

    def stride(self, loop: int) -> int:
        """How far apart, in elements, neighbours along a loop lie."""
        return self.strides()[loop]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A store with the loops around it, outermost first.

    Attributes:
        loops: Those loops.
        accesses: What it loads and stores.
        operations: Arithmetic of one iteration.
        instructions: How much of that is done in all iterations: not again in loops that it does
            not hang on. Where lanes differ, then what is one for all of them.
        costly: Calls of functions in it: exponentials, divisions.
        guards: Conditions it is under that not whole loops are left out by: ends of tiles.
        lane_guards: Of these, those that some lanes only may meet.
    """

    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    operations: int
    costly: int
    guards: int
    lane_guards: int
    instructions: tuple[float, float] = (0.0, 0.0)

    @property
    def extents(self) -> tuple[int, ...]:
        """The loops' extents."""
        return tuple(x.extent for x in self.loops)

    @property
    def iterations(self) -> int:
        """How often the store runs."""
        return prod(self.extents)

    def extent(self, kind: ForKind) -> int:
        """The product of the extents of loops of a kind."""
        return prod(x.extent for x in self.loops if x.kind == kind)


def leaves(func: PrimFunc, sizes: Mapping[str, int]) -> list[Leaf]:
    """The stores of a kernel, in order.

    Args:
        func: The kernel, laid out.
        sizes: What unknown sizes are, by name.
    """
    return list(_Walk(sizes).walk(func.body, (), {}, ()))


class _Walk:
    """Carries what sizes are, and where buffers lie; what variables are is handed down."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.loops_around: dict[Buffer, int] = {}

    def walk(
        self, s: Stmt, loops: tuple[Loop, ...], env: Env, guards: tuple[PrimExpr, ...]
    ) -> Iterator[Leaf]:
        """The leaves below a statement."""
        count = 1 + len(loops)
        match s:
            case For():
                extent = max(1, int(self.value(s.extent, env, count)[0]))
                moves = np.zeros(count + 1, np.int64)
                moves[-1] = min(1, extent - 1)
                inner = {v: np.concatenate((x, x[:1])) for v, x in env.items()}
                inner[s.var] = moves
                inside = (*loops, Loop(s.var, extent, s.kind))
                yield from self.walk(s.body, inside, inner, guards)
            case Block():
                inner = {**env, **{a.var: self.value(a.value, env, count) for a in s.axes}}
                if s.predicate is not None:
                    loops, guards = _guarded(loops, guards, s.predicate)
                if s.init is not None:
                    yield from self.walk(s.init, _first_of_sums(s, loops), inner, guards)
                yield from self.walk(s.body, loops, inner, guards)
            case Store():
                yield self.leaf(s, loops, env, guards)
            case Seq():
                for each in s.stmts:
                    yield from self.walk(each, loops, env, guards)
            case IfThen():
                fewer, more = _guarded(loops, guards, s.condition)
                yield from self.walk(s.then, fewer, env, more)
                if s.orelse is not None:
                    yield from self.walk(s.orelse, loops, env, guards)
            case Let():
                inner = {**env, s.var: self.value(s.value, env, count)}
                yield from self.walk(s.body, loops, inner, guards)
            case Allocate():
                self.loops_around[s.buffer] = len(loops)
                yield from self.walk(s.body, loops, env, guards)
            case PrimWhile():
                yield from self.walk(s.body, loops, env, guards)
            case _:
                return

    def leaf(
        self, s: Store, loops: tuple[Loop, ...], env: Env, guards: tuple[PrimExpr, ...]
    ) -> Leaf:
        """One store."""
        nodes = list(walk_prim(s.value))
        costly = [n for n in nodes if isinstance(n, Intrinsic) or _divides(n)]
        made = [n for n in nodes if isinstance(n, Binary | Compare | Select)]
        found = [
            self.access(n.buffer, n.indices, stores=False, loops=loops, env=env)
            for n in nodes
            if isinstance(n, Load)
        ]
        found.append(self.access(s.buffer, s.indices, stores=True, loops=loops, env=env))
        lanes = {x.var for x in loops if x.kind == "vectorized"}
        return Leaf(
            loops,
            tuple(found),
            sum(n.dtype != INT64 for n in made),
            len(costly),
            len(guards),
            sum(not lanes.isdisjoint(variables(g)) for g in guards),
            _instructions([n for n in made if n.dtype != INT64], loops, env),
        )

    def access(
        self,
        buffer: Buffer,
        indices: tuple[PrimExpr, ...],
        *,
        stores: bool,
        loops: tuple[Loop, ...],
        env: Env,
    ) -> Access:
        """What one load or store touches."""
        values = [self.value(i, env, len(loops) + 1) for i in indices]
        outer = self.loops_around.get(buffer, 0)
        steps = tuple(
            tuple(int(v[k + 1] - v[0]) if k >= outer else 0 for v in values)
            for k in range(len(loops))
        )
        shape = [max(1, int(self.value(d, {}, 1)[0])) for d in buffer.shape]
        if outer:
            for axis, size in enumerate(shape):
                reach = sum(
                    abs(s[axis]) * (x.extent - 1) for s, x in zip(steps, loops, strict=True)
                )
                shape[axis] = min(size, 1 + reach)
        return Access(buffer, stores, steps, tuple(shape), outer)

    def value(self, e: PrimExpr, env: Env, count: int) -> Vector:
        """What an index comes to, for each loop a step ahead; 0 where it depends on data."""
        match e:
            case Imm():
                return np.full(count, int(e.value), np.int64)
            case SizeVar():
                return np.full(count, self.sizes.get(e.name, 1), np.int64)
            case PrimVar():
                return env[e] if e in env else np.zeros(count, np.int64)
            case Binary(op, a, b):
                return _binary(op, self.value(a, env, count), self.value(b, env, count))
            case Cast():
                return self.value(e.value, env, count)
            case Select():
                return self.value(e.then, env, count)
            case _:
                return np.zeros(count, np.int64)


def _first_of_sums(s: Block, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The loops with the first iteration only of those that a block sums along."""
    summed = {v for a in s.axes if a.kind == "R" for v in variables(a.value)}
    kept = {v for a in s.axes if a.kind != "R" for v in variables(a.value)}
    return tuple(replace(x, extent=1) if x.var in summed - kept else x for x in loops)


def _guarded(
    loops: tuple[Loop, ...], guards: tuple[PrimExpr, ...], condition: PrimExpr
) -> tuple[tuple[Loop, ...], tuple[PrimExpr, ...]]:
    """The loops with those iterations only in which something runs, and what else must hold."""
    least: dict[PrimVar, int] = {}
    lanes = {x.var for x in loops if x.kind == "vectorized"}
    for part in conjuncts(condition):
        match part:
            case Compare("lt", PrimVar() as var, Imm(int() as end)) if var not in lanes:
                least[var] = end
            case Compare("eq", PrimVar() as var, Imm()) if var not in lanes:
                least[var] = 1
            case _:
                guards = (*guards, part)
    fewer = [replace(x, extent=max(1, min(x.extent, least.get(x.var, x.extent)))) for x in loops]
    return tuple(fewer), guards


def _instructions(
    made: Sequence[Binary | Compare | Select], loops: tuple[Loop, ...], env: Env
) -> tuple[float, float]:
    """How much arithmetic all iterations are, by lanes and for all lanes at once.

    What does not hang on a loop is not done again in it: the compiler takes it out of inner loops,
    and meets it once in those that are unrolled.
    """
    wide, single = 0.0, 0.0
    moves: dict[PrimVar, int] = {}
    for n in made:
        moved = 0
        for v in variables(n):
            if v in env and v not in moves:
                steps = env[v]
                moves[v] = sum(1 << k for k in range(len(loops)) if steps[k + 1] != steps[0])
            moved |= moves.get(v, 0)
        last = max(
            (k for k, x in enumerate(loops) if moved >> k & 1 and x.kind in ("serial", "parallel")),
            default=-1,
        )
        lanes, times = False, float(_weight(n))
        for k, x in enumerate(loops):
            if moved >> k & 1:
                times *= x.extent
                lanes = lanes or x.kind == "vectorized"
            elif k < last and x.kind in ("serial", "parallel"):
                times *= x.extent
        if lanes:
            wide += times
        else:
            single += times
    return wide, single


def _weight(e: Binary | Compare | Select) -> int:
    """Instructions that an operation is."""
    if isinstance(e, Compare):
        return max(1, e.a.dtype.bits // 32)  # an index has 64 bits
    return 3 if isinstance(e, Binary) and e.op in ("min", "max") and e.dtype.is_float else 1


def _divides(e: PrimExpr) -> bool:
    return isinstance(e, Binary) and e.op == "div"


def _binary(op: str, x: Vector, y: Vector) -> Vector:
    match op:
        case "add":
            return x + y
        case "sub":
            return x - y
        case "mul":
            return x * y
        case "min" | "fmin":
            return np.minimum(x, y)
        case "max" | "fmax":
            return np.maximum(x, y)
        case "floordiv" | "truncdiv":
            return x // np.where(y == 0, 1, y)
        case "floormod" | "truncmod":
            return x % np.where(y == 0, 1, y)
        case _:
            return np.zeros_like(x)
