"""Size expressions: integer arithmetic over a function's symbol slots, as plain data.

A slot is told by a size that is it alone, or by one that is linear in it: an axis that is
``2 * k + n``, where n is 3, has 7 elements if k is 2. Checks of values, native code and exported
libraries all go by the same list of who tells what (`definitions`), in the same order.

What dims are to the compiler, these are at run time: no sympy, cheap to evaluate, easy to store.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, assert_never, cast

from unity.errors import UnityError
from unity.runtime.records import Index

SizeOpName: TypeAlias = Literal["add", "sub", "mul", "floordiv", "floormod", "min", "max"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The value of a symbol: an index into the frame's slots."""

    index: Index


class _Kept:
    """What is found of a size when it is first asked for.

    Sizes share their parts: written out, a few hundred different ones can be a hundred thousand.

    Attributes:
        code: What it is evaluated by.
        named: The slots that it names.
        hashed: Its hash.
    """

    __slots__ = ("code", "hashed", "named")
    code: Callable[[Sequence[int | None]], int]
    named: tuple[int, ...]
    hashed: int


@dataclass(frozen=True, slots=True)
class SizeOp(_Kept):
    """An operation on two sizes; divisions round down."""

    op: SizeOpName
    a: Size
    b: Size

    def __hash__(self) -> int:
        """Of the content, computed once."""
        try:
            return self.hashed
        except AttributeError:
            object.__setattr__(self, "hashed", hash((self.op, self.a, self.b)))
            return self.hashed


Size: TypeAlias = int | Slot | SizeOp
MOST_WRITTEN = 1000
"""Operations of a size that is evaluated as a line of Python, those of shared parts repeated."""
_SIGNS: dict[SizeOpName, str] = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%",
}  # fmt: skip


def apply(op: SizeOpName, a: int, b: int) -> int:
    """The operation on two numbers."""
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return a // b
        case "floormod":
            return a % b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case _:
            assert_never(op)


def combine(op: SizeOpName, a: Size, b: Size) -> Size:
    """The operation on two sizes, folded when both are numbers or one is neutral.

    >>> combine("add", combine("mul", 2, 3), Slot(0))
    SizeOp(op='add', a=Slot(index=0), b=6)
    """
    if isinstance(a, int) and isinstance(b, int):
        return apply(op, a, b)
    if op == "add" and (a == 0 or b == 0):
        return b if a == 0 else a
    if op == "mul" and (a == 1 or b == 1):
        return b if a == 1 else a
    if op == "mul" and (a == 0 or b == 0):
        return 0
    if (op, b) in (("sub", 0), ("floordiv", 1)):
        return a
    if op in ("add", "mul") and isinstance(a, int):
        return SizeOp(op, b, a)
    return SizeOp(op, a, b)


def product(sizes: Sequence[Size]) -> Size:
    """The product; 1 of none."""
    result: Size = 1
    for size in sizes:
        result = combine("mul", result, size)
    return result


def evaluate(size: Size, slots: Sequence[int | None]) -> int:
    """The number a size stands for. Every slot it names must be bound.

    Raises:
        UnityError: It divides by what is 0.

    >>> evaluate(SizeOp("floordiv", SizeOp("add", Slot(0), 15), 16), [33])
    3
    """
    if isinstance(size, int):
        return size
    if isinstance(size, Slot):
        value = slots[size.index]
        assert value is not None, f"symbol slot {size.index} is read before it is bound"
        return value
    try:
        code = size.code
    except AttributeError:  # nobody asked for it before
        code = _compiled(size)
        object.__setattr__(size, "code", code)
    try:
        return code(slots)
    except ZeroDivisionError:
        names = [str(value) for value in slots]
        raise UnityError(f"a size divides by 0: {size_text(size, names)}") from None


def _compiled(size: SizeOp) -> Callable[[Sequence[int | None]], int]:
    """A function of the slots: Python's own arithmetic is ten times as fast as a walk."""
    parts, written = parts_of([size]), dict[Size, int]()
    for part in parts:
        inside = (part.a, part.b) if isinstance(part, SizeOp) else ()
        written[part] = 1 + sum(written[x] for x in inside)
    if written[size] > MOST_WRITTEN:
        return partial(_walked, tuple(parts))
    names = [f"s[{k}]" for k in range(1 + max(slots_of(size), default=0))]
    try:
        made = eval(f"lambda s: {size_text(size, names)}", {"min": min, "max": max})
    except (RecursionError, MemoryError, SyntaxError):  # more parentheses than Python reads
        return partial(_walked, tuple(parts))
    return cast("Callable[[Sequence[int | None]], int]", made)


def _walked(parts: Sequence[Size], slots: Sequence[int | None]) -> int:
    """What the last of some sizes is, each of which is made of those before it."""
    values: dict[Size, int] = {}
    for part in parts:
        if isinstance(part, SizeOp):
            values[part] = apply(part.op, values[part.a], values[part.b])
        else:
            values[part] = evaluate(part, slots)
    return values[parts[-1]]


def slots_of(size: Size) -> tuple[int, ...]:
    """The slots a size names, each once, as they occur first."""
    match size:
        case int():
            return ()
        case Slot(index):
            return (index,)
        case SizeOp():
            try:
                return size.named
            except AttributeError:
                named = tuple(dict.fromkeys((*slots_of(size.a), *slots_of(size.b))))
                object.__setattr__(size, "named", named)
                return named
        case _:
            assert_never(size)


def parts_of(sizes: Iterable[Size]) -> dict[Size, None]:
    """Sizes and all they are made of, each once, operands first."""
    found: dict[Size, None] = {}

    def add(size: Size) -> None:
        if size not in found:
            if isinstance(size, SizeOp):
                add(size.a)
                add(size.b)
            found[size] = None

    for size in sizes:
        add(size)
    return found


def may_be_negative(size: Size) -> bool:
    """Whether a size could be below zero although no symbol is."""
    return any(
        part.op == "sub" if isinstance(part, SizeOp) else isinstance(part, int) and part < 0
        for part in parts_of([size])
    )


def size_text(size: Size, names: Sequence[str]) -> str:
    """The size over the symbols' names, for messages.

    >>> size_text(SizeOp("floordiv", SizeOp("add", Slot(0), 15), 16), ["n"])
    '(n + 15) // 16'
    >>> size_text(SizeOp("add", Slot(0), SizeOp("mul", Slot(1), -1)), ["n", "m"])
    'n - m'
    """
    match size:
        case int():
            return str(size)
        case Slot(index):
            return names[index]
        case SizeOp(("min" | "max") as op, a, b):
            return f"{op}({size_text(a, names)}, {size_text(b, names)})"
        case SizeOp("add", a, int() as number) if number < 0:
            return f"{size_text(a, names)} - {-number}"
        case SizeOp("add", a, SizeOp("mul", b, -1)):
            return size_text(SizeOp("sub", a, b), names)
        case SizeOp(op, a, b):
            left, right = (
                f"({size_text(x, names)})" if isinstance(x, SizeOp) else size_text(x, names)
                for x in (a, b)
            )
            return f"{left} {_SIGNS[op]} {right}"
        case _:
            assert_never(size)


@dataclass(frozen=True, slots=True)
class Definition:
    """A slot and the size that tells its value.

    With the size's actual value it is ``(actual - rest) // slope``, or ``(rest - actual) // slope``
    if `falling`. The division must be exact, the value not negative, and the slope not 0.

    Attributes:
        slot: The slot.
        place: The size's index among those that were looked at.
        slope: By how much the size changes with the slot; never negative.
        rest: The size where the slot is 0.
    """

    slot: int
    place: int
    slope: Size = 1
    rest: Size = 0
    falling: bool = False

    def value(self, actual: Size) -> Size:
        """The slot's value as a size.

        >>> Definition(0, 0, slope=2, rest=1).value(7)
        3
        """
        ends = (self.rest, actual) if self.falling else (actual, self.rest)
        return combine("floordiv", combine("sub", *ends), self.slope)


def definitions(sizes: Sequence[Size], known: Container[int]) -> tuple[Definition, ...]:
    """Who tells the slots of sizes, in an order in which each needs those before it only.

    Args:
        sizes: Sizes whose actual values are given.
        known: The slots that have a value.

    >>> k, n = Slot(0), Slot(1)
    >>> first, second = definitions([SizeOp("add", SizeOp("mul", k, 2), n), n], known=())
    >>> first
    Definition(slot=1, place=1, slope=1, rest=0, falling=False)
    >>> second
    Definition(slot=0, place=0, slope=2, rest=Slot(index=1), falling=False)
    """
    found: dict[int, Definition] = {}
    for place, size in enumerate(sizes):
        if isinstance(size, Slot) and size.index not in known:
            found.setdefault(size.index, Definition(size.index, place))
    while True:
        told = [
            d
            for place, size in enumerate(sizes)
            for d in _told(
                size, place, {s for s in slots_of(size) if s not in known} - found.keys()
            )
        ]
        if not told:
            break
        # A slope that is a number can't turn out to be 0.
        best = next((d for d in told if isinstance(d.slope, int)), told[0])
        found[best.slot] = best
    return tuple(found.values())


def definitions_of(slots: Sequence[int], sizes: Sequence[Size]) -> tuple[Definition, ...]:
    """Who tells the slots, where all others in the sizes have values."""
    others = {s for size in sizes for s in slots_of(size)} - set(slots)
    return definitions(sizes, others)


def untold(slots: Sequence[int], sizes: Sequence[Size]) -> tuple[int, ...]:
    """Those of the slots that no size tells, where all others have values."""
    told = {d.slot for d in definitions_of(slots, sizes)}
    return tuple(s for s in slots if s not in told)


def _told(size: Size, place: int, unknown: set[int]) -> Iterator[Definition]:
    """What a size tells of the one slot in it that has no value, if that is one number."""
    if len(unknown) != 1:
        return
    (slot,) = unknown
    for falling in (False, True):
        parts, rising = _parts(size, slot, falling), _parts(size, slot, falling=False)
        if parts is not None and rising is not None and _grows(parts[0]):
            yield Definition(slot, place, parts[0], rising[1], falling)
            return


def _grows(slope: Size) -> bool:
    return slope != 0 and not may_be_negative(slope)


def _parts(size: Size, slot: int, falling: bool) -> tuple[Size, Size] | None:
    """Slope and rest of a size that is linear in a slot, of what is taken from 0 if `falling`."""
    if slot not in slots_of(size):
        return 0, combine("sub", 0, size) if falling else size
    match size:
        case Slot():
            return -1 if falling else 1, 0
        case SizeOp("add" | "sub" as op, a, b):
            first = _parts(a, slot, falling)
            second = _parts(b, slot, falling != (op == "sub"))
            if first is None or second is None:
                return None
            return combine("add", first[0], second[0]), combine("add", first[1], second[1])
        case SizeOp("mul", a, b):
            of, factor = (b, a) if slot in slots_of(b) else (a, b)
            if slot in slots_of(factor):
                return None
            if isinstance(factor, int) and factor < 0:
                falling, factor = not falling, -factor
            parts = _parts(of, slot, falling)
            return parts and (combine("mul", parts[0], factor), combine("mul", parts[1], factor))
        case _:
            return None
