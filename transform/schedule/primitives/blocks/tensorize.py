"""tensorize: a tile of a block is computed by a tensor intrinsic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unity.arith import Analyzer
from unity.arith.polynomial import from_expr, split_linear, to_expr
from unity.ir.flat_index import flat_index
from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Block, Buffer, For, PrimFunc, Stmt, Store
from unity.ir.visit import prim_children, rewrite_stmt, substitute_prim, substitute_stmt, variables

from ....blocks.buffer_match import bound_strides, differs_in_memory
from ....blocks.dataflow import addressed_in, checked
from ....blocks.legality import INTRINSIC
from ....blocks.tree import (
    Outcome,
    Values,
    all_blocks,
    block_path,
    bound_to,
    illegal,
    known_at,
    renewed,
    replaced,
    with_regions,
)
from ...intrinsics import INTRINSICS, intrinsic_named
from .blockize import blockize


def tensorize(func: PrimFunc, var: PrimVar, intrinsic: str) -> Outcome:
    """What a loop computes is done by an intrinsic's implementation.

    Args:
        func: The prim func.
        var: A loop that `blockize` takes; below it stands what the intrinsic's description says,
            on parts of the block's buffers.
        intrinsic: Its name.

    Returns:
        The block around the implementation.

    A part is a box of a buffer, or lines at an even distance in which elements lie one behind
    another as the description's do, whatever lines of the buffer they stand in. Where the
    implementation gives the address of a buffer to a C function, the part must be a box that lies
    in memory as the buffer says: compact, or of its strides (``T.strides(s, 1)`` with a symbol `s`
    takes those that are there, and `s` is their value in the implementation).

    Raises:
        UnityError: There is no such intrinsic; the loop computes something else, or on parts that
            do not lie as the implementation takes them to.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule, TensorIntrinsic, register_intrinsic
    >>> both = parse('''
    ... @script.prim_func
    ... def described(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(4, i)
    ...             b[vi] = a[vi] * 2.0
    ...
    ... @script.prim_func
    ... def made(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
    ...     for lane in T.vectorized(4):
    ...         b[lane] = a[lane] + a[lane]
    ... ''').prim_funcs()
    >>> register_intrinsic("double4", TensorIntrinsic(both["described"], both["made"]))
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 2, 8], c: f32[Buffer, 2, 8]) -> None:
    ...     for i, j in T.grid(2, 8):
    ...         with T.block("twice"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj] * 2.0
    ... ''').prim_funcs()["main"])
    >>> _, inner = sch.split(sch.get_loops("twice")[1], [None, 4])
    >>> outer = sch.tensorize(inner, "double4")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 2, 8], c: f32[Buffer, 2, 8]) -> None:
        for i, j_0 in T.grid(2, 2):
            with T.block("twice_o"):
                vi_o, vj_o = T.axis.remap("SS", i, j_0)
                for lane in T.vectorized(4):
                    c[vi_o, vj_o * 4 + lane] = a[vi_o, vj_o * 4 + lane] + a[vi_o, vj_o * 4 + lane]
    """
    found = intrinsic_named(intrinsic)
    if found is None:
        known = ", ".join(INTRINSICS) or "none"
        raise illegal(
            "tensorize, argument 2 'intrinsic'",
            f"there is no tensor intrinsic {intrinsic!r}",
            f"those registered: {known}",
        )
    tiled = blockize(func, var)
    path, outer = block_path(tiled.func, tiled.blocks[0])
    match = _Match(known_at(path))
    wanted = match.nest(found.description.body, outer.body)
    if not wanted:
        where = "tensorize, argument 1 'loop'"
        raise illegal(where, f"it does not compute what {intrinsic!r} describes")
    pairs = zip(found.description.buffers, found.implementation.buffers, strict=True)
    parts = {new: match.parts[old] for old, new in pairs if old in match.parts}
    names = {b.name for b in all_blocks(tiled.func.body)}
    implementation = substitute_stmt(
        found.implementation.body, _sizes(found.implementation, parts, match.known)
    )
    body = renewed(_placed(implementation, parts), names, set())
    attrs = outer.attrs.with_(**{INTRINSIC: intrinsic}) if symbols_in(body) else outer.attrs
    new = with_regions(replace(outer, body=body, attrs=attrs))
    done = checked(replaced(tiled.func, [(outer, new)]), "tensorize, argument 1 'loop'")
    return Outcome(done, blocks=tiled.blocks)


def _sizes(made: PrimFunc, parts: Mapping[Buffer, _Part], known: Analyzer) -> Values:
    """The values of an implementation's symbols, where its buffers stand for these parts.

    Raises:
        UnityError: A part does not lie in memory as the implementation says.
    """
    where = "tensorize, argument 1 'loop'"
    sizes: Values = {}
    for buffer, part in parts.items():
        why = None if part.loops else bound_strides(buffer, part.buffer, sizes, known)
        if why is not None:
            raise illegal(where, why)
    given = addressed_in(made.body)
    for buffer, part in parts.items():
        if buffer.scope not in ("global", part.buffer.scope):
            why = f"{part.buffer.name!r} is of scope {part.buffer.scope!r}, not {buffer.scope!r}"
            raise illegal(where, why)
        if part.loops and (buffer in given or buffer.strides is not None):
            why = f"a part of {part.buffer.name!r} goes on from line to line"
            raise illegal(where, why)
        if buffer in given:
            why = differs_in_memory(buffer, part.buffer, part.base, sizes, known)
            if why is not None:
                hint = "say T.strides(s, 1) of that buffer, and have the function use s"
                raise illegal(where, why, hint)
    return sizes


@dataclass(frozen=True, slots=True)
class _Part:
    """Where a buffer of a description lies in one of the prim func.

    Attributes:
        buffer: The one of the prim func.
        base: Where in it the part begins; of one that goes on from line to line, where the element
            is that loops stand at.
        loops: These loops, one for each dimension of the description's buffer; none of a box.
    """

    buffer: Buffer
    base: tuple[PrimExpr, ...]
    loops: tuple[PrimVar, ...] = ()

    def at(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """The place of an element of the part."""
        if self.loops:
            values: Values = dict(zip(self.loops, indices, strict=True))
            return tuple(substitute_prim(b, values) for b in self.base)
        lead = len(self.base) - len(indices)
        return tuple(
            b if k < lead else Binary("add", b, indices[k - lead]) for k, b in enumerate(self.base)
        )


@dataclass
class _Match:
    """Carries which loop stands for which, and where buffers lie."""

    known: Analyzer
    loops: Values = field(default_factory=dict[PrimVar | SizeVar, PrimExpr])
    inner: set[PrimVar] = field(default_factory=set[PrimVar])
    parts: dict[Buffer, _Part] = field(default_factory=dict[Buffer, _Part])

    def nest(self, wanted: Stmt, given: Stmt) -> bool:
        """Whether loops around a block compute what others describe."""
        while isinstance(wanted, For) and isinstance(given, For):
            if wanted.extent != given.extent or wanted.begin != imm(0) or given.begin != imm(0):
                return False
            if given.kind != "serial":
                return False
            self.loops[wanted.var] = given.var
            self.inner.add(given.var)
            self.known = self.known.with_extent(given.var, imm(0), given.extent)
            wanted, given = wanted.body, given.body
        if not isinstance(wanted, Block) or not isinstance(given, Block):
            return False
        plain = given.init is None and given.predicate is None and wanted.init is None
        w, g = wanted.body, given.body
        if not plain or not isinstance(w, Store) or not isinstance(g, Store):
            return False
        return (
            self._access(wanted, w.buffer, w.indices, given, g.buffer, g.indices)
            and self._value(wanted, w.value, given, g.value)
            and len({p.buffer for p in self.parts.values()}) == len(self.parts)
        )

    def _value(self, wanted: Block, w: PrimExpr, given: Block, g: PrimExpr) -> bool:
        if type(w) is not type(g) or w.dtype != g.dtype:
            return False
        if isinstance(w, Load) and isinstance(g, Load):
            return self._access(wanted, w.buffer, w.indices, given, g.buffer, g.indices)
        if isinstance(w, Imm | PrimVar | SizeVar):
            here = substitute_prim(bound_to(w, wanted.axes), self.loops)
            return here == bound_to(g, given.axes)
        below = list(zip(prim_children(w), prim_children(g), strict=False))
        same = all(getattr(w, n, 0) == getattr(g, n, 0) for n in ("op", "name", "attrs"))
        return same and bool(below) and all(self._value(wanted, x, given, y) for x, y in below)

    def _access(
        self,
        wanted: Block,
        described: Buffer,
        indices: Sequence[PrimExpr],
        given: Block,
        buffer: Buffer,
        place: Sequence[PrimExpr],
    ) -> bool:
        lead = len(place) - len(indices)
        if described.dtype != buffer.dtype:
            return False
        base: list[PrimExpr] = []
        for k, index in enumerate(place):
            here = bound_to(index, given.axes)
            if k >= lead >= 0:
                there = substitute_prim(bound_to(indices[k - lead], wanted.axes), self.loops)
                here = Binary("sub", here, there)
            base.append(self.known.simplify(here))
        part: _Part | None = _Part(buffer, tuple(base))
        if lead < 0 or any(variables(b) & self.inner for b in base):
            wanted_at = tuple(bound_to(i, wanted.axes) for i in indices)
            given_at = tuple(bound_to(i, given.axes) for i in place)
            part = self._run(described, wanted_at, buffer, given_at)
        return part is not None and self.parts.setdefault(described, part) == part

    def _run(
        self,
        described: Buffer,
        wanted: tuple[PrimExpr, ...],
        buffer: Buffer,
        place: tuple[PrimExpr, ...],
    ) -> _Part | None:
        """A part that is no box: its lines are compact, and lie at an even distance."""
        loops = tuple(substitute_prim(i, self.loops) for i in wanted)
        names = tuple(v for v in loops if isinstance(v, PrimVar))
        if described.strides is not None or len(set(names)) != len(loops):
            return None
        there, here = flat_index(buffer, place), flat_index(described, loops)
        begin = self.known.simplify(Binary("sub", there, here))
        left = variables(begin) & self.inner
        if left and len(loops) > 1:
            rest, step = split_linear(from_expr(begin), names[0])
            even = step is not None and not variables(to_expr(step)) & self.inner
            left = variables(to_expr(rest)) & self.inner if even else left
        if left:
            return None
        return _Part(buffer, tuple(self.known.simplify(i) for i in place), names)


def _placed(s: Stmt, parts: dict[Buffer, _Part]) -> Stmt:
    """An implementation on the parts of buffers that it is for."""

    def on_stmt(x: Stmt) -> Stmt | None:
        if isinstance(x, Store) and x.buffer in parts:
            part = parts[x.buffer]
            return replace(x, buffer=part.buffer, indices=part.at(x.indices))
        return with_regions(x) if isinstance(x, Block) else None

    def on_load(e: Load) -> PrimExpr | None:
        if e.buffer in parts:
            part = parts[e.buffer]
            return Load(part.buffer, part.at(e.indices), e.predicate)
        return None

    return rewrite_stmt(s, on_stmt, load_fn=on_load)
