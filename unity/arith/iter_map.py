"""Iteration maps: what values of block axes say about the loops that drive them.

Comes in: index expressions over loop variables that count from 0. Comes out: each as a sum of
splits ``(source // lower) % extent * scale``, if it is one; whether different points of the loops
give different values (injective), and whether the values fill a box (bijective).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.visit import leaves, substitute_prim, variables, walk_prim

from .analyzer import Analyzer
from .polynomial import Poly, from_expr, to_expr

MOST_TRIED = 16
"""Sizes that are tried to find the least of which a loop runs."""


@dataclass(frozen=True, slots=True)
class IterSplit:
    """The term ``(source // lower) % extent * scale``; `source` is a loop or several fused."""

    source: PrimExpr
    lower: PrimExpr
    extent: PrimExpr
    scale: PrimExpr


@dataclass(frozen=True, slots=True)
class IterSum:
    """A value: splits, and what does not depend on the loops."""

    splits: tuple[IterSplit, ...]
    base: PrimExpr


@dataclass(frozen=True, slots=True)
class IterMap:
    """Values in terms of loops.

    Attributes:
        sums: One for each value.
        extents: Of each source; the loops first, then sums of loops that are split as one.
        fused: What the sources are that are no loops.
        known: What is known of sizes where the loops run at all.
    """

    sums: tuple[IterSum, ...]
    extents: Mapping[PrimExpr, PrimExpr]
    fused: Mapping[PrimExpr, IterSum]
    known: Analyzer

    def is_injective(self) -> bool:
        """Whether different points of the loops provably give different values.

        >>> i, j = PrimVar("i"), PrimVar("j")
        >>> loops = {i: imm(6), j: imm(4)}
        >>> [detect([e], loops).is_injective() for e in (i * 4 + j, i * 3 + j, j - i * 4)]
        [True, False, True]
        """
        if not all(self._separable(s) for s in self.sums):
            return False
        known = [split for s in self.sums for split in s.splits]
        for source in reversed(list(self.fused)):
            if self._covered(source, known):
                known += self.fused[source].splits
        loops = [s for s in self.extents if s not in self.fused]
        return all(self._covered(source, known) for source in loops)

    def is_bijective(self) -> bool:
        """Whether, besides, the values take every point of a box (their `extents`)."""
        used = [split for s in self.sums for split in s.splits]
        used += [split for s in self.fused.values() for split in s.splits]
        return (
            self.is_injective()
            and all(self.is_compact(s) for s in self.sums)
            and all(self._exact(source, used) for source in self.extents)
        )

    def is_compact(self, s: IterSum) -> bool:
        """Whether a value takes every number from its base on, up to its extent."""
        return self.compact_extent(s) is not None

    def compact_extent(self, s: IterSum) -> PrimExpr | None:
        """How many numbers from its base on a value takes, if it takes each of them."""
        reach: PrimExpr = imm(1)
        left = [x for x in s.splits if x.extent != imm(1)]
        while left:
            found = next((x for x in left if self.known.equal(x.scale, reach)), None)
            if found is None:
                return None
            left.remove(found)
            reach = self._times(reach, found.extent)
        return reach

    def _separable(self, s: IterSum) -> bool:
        """Whether a sum tells each of its splits: as digits do, or by what each adds at least."""
        if self.is_compact(s):
            return True
        left = [(_size(x.scale), x.extent) for x in s.splits if x.extent != imm(1)]
        reach: PrimExpr = imm(1)
        while left:
            least = next((x for x in left if all(self._le(x[0], y[0]) for y in left)), None)
            if least is None or not self._le(reach, least[0]):
                return False
            left.remove(least)
            size, extent = least
            if isinstance(reach, Imm) and isinstance(size, Imm) and isinstance(extent, Imm):
                reach = imm(int(reach.value + size.value * (extent.value - 1)))
                continue
            steps = Binary("mul", size, Binary("sub", extent, imm(1)))
            reach = self.known.simplify(Binary("add", reach, steps))
        return True

    def _times(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        if isinstance(a, Imm) and isinstance(b, Imm):
            return imm(int(a.value * b.value))
        return self.known.simplify(Binary("mul", a, b))

    def _le(self, a: PrimExpr, b: PrimExpr) -> bool:
        if isinstance(a, Imm) and isinstance(b, Imm):
            return a.value <= b.value
        return self.known.prove(Compare("le", a, b))

    def _covered(self, source: PrimExpr, splits: Sequence[IterSplit]) -> bool:
        """Whether the splits tell every digit of a source."""
        reach: PrimExpr = imm(1)
        left = [s for s in splits if s.source == source]
        while not self._le(self.extents[source], reach):
            found = next((x for x in left if self.known.equal(x.lower, reach)), None)
            if found is None:
                return False
            left.remove(found)
            reach = self._times(reach, found.extent)
        return True

    def _exact(self, source: PrimExpr, splits: Sequence[IterSplit]) -> bool:
        """Whether the splits of a source are each used once and multiply to its extent."""
        total: PrimExpr = imm(1)
        for split in splits:
            if split.source == source:
                total = Binary("mul", total, split.extent)
        extent = self.extents[source]
        if self.known.bounds(extent) == (1, 1):  # where it runs it runs once: nothing tells it
            extent = imm(1)
        return self.known.equal(total, extent)


def _size(scale: PrimExpr) -> PrimExpr:
    """How far a split moves a sum at each step, in whatever direction."""
    match scale:
        case Imm(int() as value):
            return imm(abs(value))
        case _:
            return scale


def detect(
    values: Sequence[PrimExpr], loops: Mapping[PrimVar, PrimExpr], known: Analyzer | None = None
) -> IterMap | None:
    """The values as an iteration map; None where one is no sum of splits.

    Args:
        values: Index expressions.
        loops: Extents of the loop variables; other variables count as constants.
        known: What is known of the other variables.

    >>> f = PrimVar("f")
    >>> detect([f // 4, f % 4], {f: imm(24)}).is_bijective()
    True
    >>> detect([f // 4, f % 3], {f: imm(24)}).is_injective()
    False
    """
    known = where_loops_run(known or Analyzer(), loops)
    for var, extent in loops.items():
        known = known.with_extent(var, imm(0), extent)
    finder = _Finder(loops, known)
    sums: list[IterSum] = []
    for value in values:
        found = finder.sum(value)
        if found is None:
            return None
        sums.append(found)
    m = IterMap(tuple(sums), finder.extents, finder.fused, known)
    if not m.fused or m.is_bijective():
        return m
    joined = _in_digits_of_fused(m)
    return joined if joined.is_injective() else m


def _in_digits_of_fused(m: IterMap) -> IterMap:
    """The map with digits of what makes up a fused source as digits of that source.

    Of ``f = o * 8 + i`` a value ``f // 504`` is simplified to ``o // 63``, while ``f // 36`` is
    not: all are digits of `f`. So are those of a quotient, ``o * 2 + i // 4``.
    """
    sums, extents, fused = m.sums, dict(m.extents), dict(m.fused)
    for part in m.fused:
        for whole in fused:
            by = None if whole == part else _quotient(fused[whole], fused[part])
            if by is not None:
                sums = tuple(_of_whole(s, part, whole, by, m.known) for s in sums)
                del fused[part], extents[part]
                fused = {f: _of_whole(s, part, whole, by, m.known) for f, s in fused.items()}
                break
    for source, found in fused.items():
        sums = tuple(
            replace(s, splits=tuple(_as_digit(x, source, found, m.known) for x in s.splits))
            for s in sums
        )
    return replace(m, sums=sums, extents=extents, fused=fused)


def _quotient(whole: IterSum, part: IterSum) -> int | None:
    """What number a compact sum is divided by to give another one; None if there is none."""
    highest = {(x.source, x.lower, x.extent): x.scale for x in part.splits}
    for split in whole.splits:
        a, b = split.scale, highest.get((split.source, split.lower, split.extent))
        if isinstance(a, Imm) and isinstance(b, Imm) and a.value > b.value and b.value > 0:
            by, rest = divmod(int(a.value), int(b.value))
            left = [_divided(x, by) for x in whole.splits]
            if not rest and {x for x in left if x is None or x.extent != imm(1)} == {*part.splits}:
                return by
    return None


def _divided(split: IterSplit, by: int) -> IterSplit | None:
    """What a digit of a compact sum is of the quotient by a number; of extent 1 where it is gone.

    None where the number lies within the digit and does not part it evenly.
    """
    if not isinstance(split.scale, Imm):
        return None
    scale = int(split.scale.value)
    if scale % by == 0:
        return replace(split, scale=imm(scale // by))
    step, rest = divmod(by, scale)
    if rest or not (isinstance(split.extent, Imm) and isinstance(split.lower, Imm)):
        return None
    lower, extent = int(split.lower.value), int(split.extent.value)
    if step % extent == 0:
        return replace(split, extent=imm(1))
    if extent % step:
        return None
    return IterSplit(split.source, imm(lower * step), imm(extent // step), imm(1))


def _of_whole(s: IterSum, part: PrimExpr, whole: PrimExpr, by: int, known: Analyzer) -> IterSum:
    """A sum with digits of a quotient as those of what was divided."""
    splits = (
        replace(x, source=whole, lower=known.simplify(Binary("mul", x.lower, imm(by))))
        if x.source == part
        else x
        for x in s.splits
    )
    return replace(s, splits=tuple(splits))


def _as_digit(split: IterSplit, source: PrimExpr, found: IterSum, known: Analyzer) -> IterSplit:
    """A digit of a part of a fused source as one of that source; as it is where it is none."""
    for part in found.splits:
        if part.source != split.source:
            continue
        lower, first = split.lower, part.lower
        if not (isinstance(lower, Imm) and isinstance(first, Imm)) or lower.value % first.value:
            continue
        step = imm(int(lower.value // first.value))
        taken = known.simplify(Binary("mul", split.extent, step))
        if known.equal(Binary("floormod", part.extent, taken), imm(0)):
            at = known.simplify(Binary("mul", part.scale, step))
            return IterSplit(source, at, split.extent, split.scale)
    return split


def inverse(m: IterMap, at: Sequence[PrimExpr]) -> dict[PrimVar, PrimExpr] | None:
    """Each loop in terms of the values of a map; None where the map does not tell them.

    >>> i, j = PrimVar("i"), PrimVar("j")
    >>> back = inverse(detect([i * 4 + j], {i: imm(6), j: imm(4)}), [PrimVar("v")])
    >>> [back[i].op, back[j].op]
    ['floordiv', 'floormod']
    """
    if not m.is_injective() or not all(m.is_compact(s) for s in m.sums):
        return None
    digits = [d for s, v in zip(m.sums, at, strict=True) for d in _digits(m, s, v)]
    for source in reversed(list(m.fused)):
        digits += _digits(m, m.fused[source], _joined(source, digits))
    return {
        v: imm(0) if extent == imm(1) else m.known.simplify(_joined(v, digits))
        for v, extent in m.extents.items()
        if isinstance(v, PrimVar)
    }


def _digits(m: IterMap, s: IterSum, value: PrimExpr) -> list[tuple[IterSplit, PrimExpr]]:
    """Each split of a compact sum, found back from the sum's value."""
    whole = m.compact_extent(s)
    assert whole is not None
    rest = Binary("sub", value, s.base)
    found: list[tuple[IterSplit, PrimExpr]] = []
    for split in s.splits:
        digit: PrimExpr = Binary("floordiv", rest, split.scale)
        if not m.known.equal(Binary("mul", split.scale, split.extent), whole):
            digit = Binary("floormod", digit, split.extent)
        found.append((split, digit))
    return found


def _joined(source: PrimExpr, digits: Sequence[tuple[IterSplit, PrimExpr]]) -> PrimExpr:
    total: PrimExpr = imm(0)
    seen: list[PrimExpr] = []
    for split, digit in digits:
        if split.source == source and split.lower not in seen:
            seen.append(split.lower)
            total = Binary("add", total, Binary("mul", digit, split.lower))
    return total


def where_loops_run(known: Analyzer, loops: Mapping[PrimVar, PrimExpr]) -> Analyzer:
    """Knowing that sizes are positive which, were they 0, would leave a loop nothing to do."""
    for extent in loops.values():
        for e in walk_prim(extent) if leaves(extent).sizes else ():
            if isinstance(e, SizeVar):
                low, high = known.bounds(e)
                least = low or 0
                while least < MOST_TRIED and _is_nothing(extent, e, least, known):
                    least += 1
                if low is not None and least > low:
                    known = known.with_range(e, least, high)
        known = _where_it_runs(known, extent).with_positive(extent).where_runs(extent)
    return known


def _is_nothing(extent: PrimExpr, size: SizeVar, n: int, known: Analyzer) -> bool:
    """Whether a loop has no iteration where a size is a number."""
    return known.equal(substitute_prim(extent, {size: imm(n)}), imm(0))


def _where_it_runs(known: Analyzer, extent: PrimExpr) -> Analyzer:
    """Knowing how large a size is at least where a loop of ``(n - 1) // 2`` iterations runs."""
    sizes = leaves(extent).sizes
    if len(sizes) != 1 or not _grows(extent):
        return known
    (size,) = sizes
    low, high = known.bounds(size)
    for n in range(low or 0, (low or 0) + MOST_TRIED):
        count = known.simplify(substitute_prim(extent, {size: imm(n)}))
        if isinstance(count, Imm) and count.value >= 1:
            return known.with_range(size, n, high)
    return known


def _grows(e: PrimExpr) -> bool:
    """Whether an expression is surely no less where sizes in it are greater."""
    match e:
        case Imm() | SizeVar():
            return True
        case Binary("add", a, b):
            return _grows(a) and _grows(b)
        case Binary("sub", a, Imm()):
            return _grows(a)
        case Binary("mul" | "floordiv" as op, a, Imm(int() as by)):
            return by >= (op == "floordiv") and _grows(a)
        case _:
            return False


@dataclass
class _Finder:
    """Carries the sources met so far."""

    loops: Mapping[PrimVar, PrimExpr]
    known: Analyzer
    extents: dict[PrimExpr, PrimExpr] = field(init=False)
    fused: dict[PrimExpr, IterSum] = field(default_factory=dict[PrimExpr, IterSum])

    def __post_init__(self) -> None:
        self.extents = dict(self.loops.items())

    def sum(self, value: PrimExpr) -> IterSum | None:
        """The value as a sum of splits."""
        base: Poly = {}
        scales: dict[PrimExpr, Poly] = {}
        for monomial, coefficient in from_expr(self.known.simplify(value)).items():
            moving = [a for a in monomial if self._moves(a)]
            if not moving:
                base[monomial] = coefficient
                continue
            rest = tuple(a for a in monomial if a is not moving[0])
            if len(moving) > 1 or len(rest) != len(monomial) - 1:
                return None
            scales.setdefault(moving[0], {})[rest] = coefficient
        splits: list[IterSplit] = []
        for atom, factor in scales.items():
            split = self._split(atom)
            if split is None:
                return None
            scale = self.known.simplify(Binary("mul", split.scale, to_expr(factor)))
            splits.append(IterSplit(split.source, split.lower, split.extent, scale))
        return IterSum(tuple(splits), to_expr(base))

    def _moves(self, e: PrimExpr) -> bool:
        return not self.loops.keys().isdisjoint(variables(e))

    def _split(self, atom: PrimExpr) -> IterSplit | None:
        match atom:
            case PrimVar():
                return IterSplit(atom, imm(1), self.loops[atom], imm(1))
            case Binary("floordiv" | "floormod" as op, a, b) if not self._moves(b):
                inner = self._single(a)
                if inner is None or not self.known.prove(Compare("ge", b, imm(1))):
                    return None
                if op == "floormod":
                    return self._modulus(inner, b)
                lower = self.known.simplify(Binary("mul", inner.lower, b))
                up = Binary("add", inner.extent, Binary("sub", b, imm(1)))
                extent = self.known.simplify(Binary("floordiv", up, b))
                return IterSplit(inner.source, lower, extent, imm(1))
            case _:
                return None

    def _modulus(self, inner: IterSplit, b: PrimExpr) -> IterSplit | None:
        if self.known.prove(Compare("le", inner.extent, b)):
            return inner
        if not self.known.equal(Binary("floormod", inner.extent, b), imm(0)):
            whole = Binary("mul", inner.lower, inner.extent)
            if not self.known.prove(Compare("ge", whole, self.extents[inner.source])):
                return None  # the digits above would wrap around
        return IterSplit(inner.source, inner.lower, b, imm(1))

    def _single(self, e: PrimExpr) -> IterSplit | None:
        """The expression as one split, a compact sum becoming a source of its own."""
        found = self.sum(e)
        if found is None or found.base != imm(0) or not found.splits:
            return None
        if len(found.splits) == 1 and found.splits[0].scale == imm(1):
            return found.splits[0]
        extent = IterMap((), self.extents, self.fused, self.known).compact_extent(found)
        if extent is None:
            return None
        source = self.known.simplify(e)
        self.extents[source] = extent
        self.fused[source] = found
        return IterSplit(source, imm(1), extent, imm(1))


__all__ = ["IterMap", "IterSplit", "IterSum", "detect", "inverse", "where_loops_run"]
