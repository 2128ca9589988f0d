"""Size expressions: integer arithmetic over a function's symbol slots, as plain data.

What dims are to the compiler, these are at run time: no sympy, cheap to evaluate, easy to store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never, cast

from unity.errors import UnityError
from unity.runtime.records import Index

SizeOpName: TypeAlias = Literal["add", "sub", "mul", "floordiv", "floormod", "min", "max"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The value of a symbol: an index into the frame's slots."""

    index: Index


class _Compiled:
    """What a size is evaluated by, made when it is first asked for."""

    __slots__ = ("code",)
    code: Callable[[Sequence[int | None]], int]


@dataclass(frozen=True, slots=True)
class SizeOp(_Compiled):
    """An operation on two sizes; divisions round down."""

    op: SizeOpName
    a: Size
    b: Size


Size: TypeAlias = int | Slot | SizeOp
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
    names = [f"s[{k}]" for k in range(1 + max(slots_of(size), default=0))]
    try:
        made = eval(f"lambda s: {size_text(size, names)}", {"min": min, "max": max})
    except (RecursionError, MemoryError, SyntaxError):  # more parentheses than Python reads
        return lambda s: apply(size.op, evaluate(size.a, s), evaluate(size.b, s))
    return cast("Callable[[Sequence[int | None]], int]", made)


def slots_of(size: Size) -> Iterator[int]:
    """The slots a size names, repeated as they occur."""
    match size:
        case int():
            return
        case Slot(index):
            yield index
        case SizeOp(_, a, b):
            yield from slots_of(a)
            yield from slots_of(b)
        case _:
            assert_never(size)


def may_be_negative(size: Size) -> bool:
    """Whether a size could be below zero although no symbol is."""
    match size:
        case int():
            return size < 0
        case Slot():
            return False
        case SizeOp("sub"):
            return True
        case SizeOp(_, a, b):
            return may_be_negative(a) or may_be_negative(b)
        case _:
            assert_never(size)


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
