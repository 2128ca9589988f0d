"""Finding and replacing parts of a prim func: what every schedule primitive starts and ends with.

Loops are found by variable and blocks by name, which a schedule keeps distinct (`distinct`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.arith.region import covers
from unity.errors import UnityError
from unity.ir.dtype import BOOL
from unity.ir.prim_expr import Binary, Not, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import (
    Allocate,
    Block,
    BlockAxis,
    Buffer,
    For,
    IfThen,
    Let,
    PrimFunc,
    PrimWhile,
    Seq,
    Stmt,
)
from unity.ir.visit import (
    allocates,
    binds,
    bound_in,
    map_stmt,
    map_stmts,
    prim_loads,
    stmt_children,
    stmt_exprs,
    stmt_loads,
    substitute_prim,
    substitute_stmt,
    temporaries,
    variables,
    walk_stmt,
    with_shape,
)

from .regions import GIVEN, kept

NOTHING = Seq(())
Path = tuple[Stmt, ...]
"""From a function's body down to a statement, both taken in."""
Values = dict[PrimVar | SizeVar, PrimExpr]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a primitive leaves: the prim func, and the loops and blocks it made."""

    func: PrimFunc
    loops: tuple[PrimVar, ...] = ()
    blocks: tuple[str, ...] = ()


def illegal(where: str, why: str, hint: str | None = None) -> UnityError:
    """The error of a refused primitive: ``split, argument 2 'factors': ...``."""
    return UnityError(f"{where}: {why}", hint=hint)


def path_to(s: Stmt, wanted: Callable[[Stmt], bool]) -> Path | None:
    """The path to the first statement that is wanted."""
    if wanted(s):
        return (s,)
    for child in stmt_children(s):
        below = path_to(child, wanted)
        if below is not None:
            return (s, *below)
    return None


def loop_path(func: PrimFunc, var: PrimVar) -> tuple[Path, For]:
    """The way to a loop, and the loop."""
    path = path_to(func.body, lambda s: isinstance(s, For) and s.var is var)
    if path is None:
        raise UnityError(
            f"the loop {var.name!r} is gone", hint="it was split, fused or moved; get_loops again"
        )
    loop = path[-1]
    assert isinstance(loop, For)
    return path, loop


def block_path(func: PrimFunc, name: str) -> tuple[Path, Block]:
    """The way to a block, and the block."""
    path = path_to(func.body, lambda s: isinstance(s, Block) and s.name == name)
    if path is None:
        names = ", ".join(b.name for b in all_blocks(func.body)) or "none"
        raise UnityError(f"there is no block {name!r}", hint=f"the blocks are: {names}")
    block = path[-1]
    assert isinstance(block, Block)
    return path, block


def all_blocks(s: Stmt) -> list[Block]:
    """Every block, nested ones too."""
    return [x for x in walk_stmt(s) if isinstance(x, Block)]


def blocks_below(s: Stmt) -> list[Block]:
    """The blocks of a statement's own scope, in order: not those inside other blocks."""
    if isinstance(s, Block):
        return [s]
    return [b for child in stmt_children(s) for b in blocks_below(child)]


def scope_path(path: Path) -> Path:
    """The part of a path below the innermost block around its end (the end may be a block).

    One of several versions of all that is in a scope, by a fact about sizes, is a scope itself.
    """
    begin = 0
    is_looped = False
    for k, s in enumerate(path[:-1]):
        if isinstance(s, Block):
            begin, is_looped = k + 1, False
        elif isinstance(s, IfThen) and over_sizes(s.condition) and not is_looped:
            begin = k + 1
        elif isinstance(s, For | PrimWhile):
            is_looped = True
    return path[begin:]


def loops_of(path: Path) -> tuple[For, ...]:
    """The loops on a path."""
    return tuple(s for s in path if isinstance(s, For))


_KNOWN: dict[tuple[int, ...], tuple[Path, Analyzer]] = {}
"""What was found by `facts` of paths, which are kept so that nothing else gets their places."""
_MOST_KNOWN = 256


def known_at(path: Path) -> Analyzer:
    """What the loops and blocks on a path say of their variables; remembered with its proofs."""
    key = facts(path)
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _knowing(known_above(path), path[-1]) if path else Analyzer()
        _KNOWN[key] = found = (path, known)
    return found[1]


def facts(path: Path) -> tuple[int, ...]:
    """The places of all on a path that says something of variables: what is in loops is not.

    Equal for equal paths as long as one of them is kept; steps change what is in a loop, and leave
    what its variable is.
    """
    found: list[int] = []
    for k, s in enumerate(path):
        match s:
            case For():
                found += (-1, id(s.var), id(s.begin), id(s.extent))
            case Block():
                for a in s.axes:
                    found += (-1, id(a.var), id(a.domain.begin), id(a.domain.extent))
            case Let():
                found += (-2, id(s.var), id(s.value))
            case IfThen() if k + 1 < len(path) and over_sizes(s.condition):
                found += (-3 if path[k + 1] is s.then else -4, id(s.condition))
            case _:
                pass
    return tuple(found)


def known_above(path: Path) -> Analyzer:
    """The same without the statement at the end: conditions over sizes hold where it stands."""
    *before, end = path
    known, above = known_at(tuple(before)), before[-1] if before else None
    if not isinstance(above, IfThen) or not over_sizes(above.condition):
        return known
    holds = end is above.then
    return known.with_condition(above.condition if holds else Not(above.condition))


def over_sizes(condition: PrimExpr) -> bool:
    """Whether a condition is the same all through a call."""
    return not variables(condition) and not prim_loads(condition)


def _knowing(known: Analyzer, s: Stmt) -> Analyzer:
    """With what a statement says of the variables it binds."""
    match s:
        case For():
            return known.with_extent(s.var, s.begin, s.extent)
        case Block():
            for axis in s.axes:
                known = known.with_extent(axis.var, axis.domain.begin, axis.domain.extent)
            return known
        case Let():
            return known.with_value(s.var, s.value)
        case _:
            return known


def replaced(func: PrimFunc, changes: Sequence[tuple[Stmt, Stmt]]) -> PrimFunc:
    """The prim func with statements (by identity) replaced; emptied loops go with them."""
    new = {id(old): made for old, made in changes}
    above = set[int]()
    _note_above(func.body, new.keys(), above)

    def go(s: Stmt) -> Stmt:
        if id(s) in new:
            return new[id(s)]
        return _tidy(map_stmts(s, go)) if id(s) in above else s

    return replace(func, body=go(func.body))


def _note_above(s: Stmt, wanted: Container[int], above: set[int]) -> bool:
    """Whether a statement is one of some, or around one; puts those around them in a set."""
    if id(s) in wanted:
        return True
    found = [_note_above(c, wanted, above) for c in stmt_children(s)]
    if not any(found):
        return False
    above.add(id(s))
    return True


def _tidy(s: Stmt) -> Stmt:
    match s:
        case For() | Let() | Allocate() if s.body == NOTHING:
            return NOTHING
        case IfThen() if s.then == NOTHING and s.orelse is None:
            return NOTHING
        case Seq():
            parts: list[Stmt] = []
            for each in s.stmts:
                parts += each.stmts if isinstance(each, Seq) else (each,)
            if len(parts) == 1:
                return parts[0]
            return s if len(parts) == len(s.stmts) else Seq(tuple(parts))
        case _:
            return s


def sequence(stmts: Sequence[Stmt]) -> Stmt:
    """The statements in order, flat."""
    return _tidy(Seq(tuple(stmts)))


def around(loops: Sequence[For], body: Stmt) -> Stmt:
    """Loops, outermost first, around a body."""
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def driven(block: Block, var: PrimVar) -> set[str]:
    """The kinds of the axes that a loop's variable drives."""
    return {axis.kind for axis in block.axes if var in variables(axis.value)}


def conjunction(parts: Sequence[PrimExpr]) -> PrimExpr | None:
    """The conditions joined."""
    result: PrimExpr | None = None
    for part in parts:
        result = part if result is None else Binary("and", result, part)
    return result


def guarded(s: Stmt, condition: PrimExpr) -> Stmt:
    """The statement where a condition holds: blocks take it as their predicate."""
    match s:
        case Block():
            return replace(s, predicate=_both(s.predicate, condition))
        case For() | Allocate() | Seq() if not any(_loads(e) for e in stmt_exprs(s)):
            return map_stmts(s, lambda x: guarded(x, condition))
        case _:
            return IfThen(condition, s)


def _both(given: PrimExpr | None, condition: PrimExpr) -> PrimExpr:
    """Both conditions; what the given one loads, only where the other holds."""
    if given is None:
        return condition
    if _loads(given):
        return Select(condition, given, imm(False, BOOL))
    return Binary("and", given, condition)


def _loads(e: PrimExpr) -> bool:
    return bool(prim_loads(e))


def buffers_in(s: Stmt) -> Iterator[Buffer]:
    """Every buffer that a statement's expressions and stores name, with repeats."""
    for each in walk_stmt(s):
        yield from (x.buffer for x in stmt_loads(each))
        stored = getattr(each, "buffer", None)
        if isinstance(stored, Buffer) and not isinstance(each, Allocate):
            yield stored


def unique(name: str, taken: set[str]) -> str:
    """The name, numbered if it is taken; it then is."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def distinct(func: PrimFunc) -> PrimFunc:
    """The prim func with blocks named, no name twice, and no variable bound in two places."""
    names: set[str] = set()
    body = renewed(func.body, names, {p for p in func.params if isinstance(p, PrimVar)})
    return func if body is func.body else replace(func, body=body)


def renewed(s: Stmt, names: set[str], bound: set[PrimVar]) -> Stmt:
    """The statement with new names for blocks in `names`, new variables for those in `bound`.

    Both sets take what is met.
    """

    def own(var: PrimVar) -> PrimVar:
        new = replace(var) if var in bound else var
        bound.add(new)
        return new

    def go(x: Stmt, values: Values, buffers: Mapping[Buffer, Buffer]) -> Stmt:
        if isinstance(x, Block):
            name = unique(x.name or "block", names)
            x = x if name == x.name else replace(x, name=name)
        fresh = {var: own(var) for var in binds(x)}
        changed: Values = {var: new for var, new in fresh.items() if new is not var}
        values = values | changed if changed else values
        if not values:
            return map_stmts(x, lambda c: go(c, values, buffers))
        here = _moved(x, values, buffers)
        return map_stmt(
            x,
            lambda c: go(c, values, here),
            lambda e: substitute_prim(e, values, here),
            lambda v: fresh.get(v, v),
            lambda b: here.get(b, b),
        )

    return go(s, {}, {})


def _moved(s: Stmt, values: Values, buffers: Mapping[Buffer, Buffer]) -> Mapping[Buffer, Buffer]:
    """With new buffers for those that a statement allocates in a shape that has other values."""
    moved = {b: with_shape(b, lambda e: substitute_prim(e, values)) for b in allocates(s)}
    return {**buffers, **moved} if moved else buffers


def copied(s: Stmt, func: PrimFunc) -> Stmt:
    """A second copy of a part of a prim func, with variables and block names of its own."""
    names, bound = {b.name for b in all_blocks(func.body)}, bound_in(s)
    return substitute_stmt(renewed(s, names, bound), {}, {b: replace(b) for b in temporaries(s)})


def honest(func: PrimFunc) -> PrimFunc:
    """The prim func with the regions of blocks that say too little found anew."""

    def go(s: Stmt) -> Stmt:
        s = map_stmts(s, go)
        if not isinstance(s, Block):
            return s
        found = with_regions(s)
        known = Analyzer()
        told = all(
            any(r.buffer is f.buffer and covers(r.ranges, f.ranges, known) for r in given)
            for given, regions in ((s.reads, found.reads), (s.writes, found.writes))
            for f in regions
        )
        return s if told else found

    body = go(func.body)
    return func if body is func.body else replace(func, body=body)


def with_regions(block: Block, around: Collection[PrimVar] = ()) -> Block:
    """The block with its read and write regions found anew, but for given ones that still hold.

    Args:
        block: The block.
        around: Axes of blocks around it; those that its regions are over are known.
    """
    ranges = [r for region in (*block.reads, *block.writes) for r in region.ranges]
    outer = {v for r in ranges for e in (r.begin, r.extent) for v in variables(e)}
    over = {a.var: None for a in block.axes} | dict.fromkeys((*around, *outer))
    reads, writes = block_regions(block.body, block.init, over)
    if GIVEN in block.attrs:
        reads, writes = kept(block, block.reads, reads), kept(block, block.writes, writes)
    return replace(block, reads=reads, writes=writes)


def bound_to(e: PrimExpr, axes: Sequence[BlockAxis]) -> PrimExpr:
    """An expression over axes as one over the loops that drive them."""
    return substitute_prim(e, {a.var: a.value for a in axes})


def is_zero(e: PrimExpr) -> bool:
    """Whether an expression is the literal 0."""
    return e == imm(0)


def with_buffers(s: Stmt, buffers: Mapping[Buffer, Buffer]) -> Stmt:
    """The statement with buffers exchanged."""
    return substitute_stmt(s, {}, buffers)
