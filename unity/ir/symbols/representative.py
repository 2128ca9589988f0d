"""The number that an unknown size is taken for where costs are estimated: one rule for all of them.

Comes in: a dim or an extent. Goes out: an integer. What is chosen by it is right for every size
and fast for those near it. In this order a symbol is

1. what its declaration says is typical: ``dim("n", typical=128)``, or `sizes` of `unity.compile`;
2. its upper bound, ``dim("n", max=512)``, unless that is so large that it only guards memory;
3. what the place says an unknown size is (`LENGTH`, `IMAGE`, `FRAMES`, `BATCH`), if no less than
   its minimum.
"""

from __future__ import annotations

from unity.ir.dims import Dim, Facts, Symbol, evaluate, symbols_of
from unity.ir.prim_expr import Binary, Imm, PrimExpr, SizeVar

LENGTH = 64
"""An unknown size in general: the length of a sequence."""
IMAGE = 224
"""An unknown height or width of an image; what is computed of it follows."""
IMAGES = (112, 160, IMAGE, 320)
"""Unknown heights and widths, for a choice that is to suit them all: what is best for one of them
may leave one of two threads idle at another."""
FRAMES = 8
"""An unknown number of frames of a clip."""
BATCH = 1
"""An unknown number of images."""
GUARDING = 4096
"""From here on an upper bound guards memory and says nothing of what is typical."""


def representative(value: Dim, unknown: int = LENGTH) -> int:
    """What a dim is taken for.

    An expression is computed of its symbols: its bounds say too little, those of
    ``min(1000000000, n)`` for instance.

    Args:
        value: The dim.
        unknown: A symbol of which nothing is known.

    >>> from unity.ir.dims import dim
    >>> representative((dim("h") + 1) // 2, IMAGE), representative(dim("n", max=512) * 2)
    (112, 1024)
    """
    if isinstance(value, int):
        return value
    return max(0, evaluate(value, {s: of_symbol(s, unknown) for s in symbols_of(value)}))


def of_symbol(symbol: Symbol, unknown: int = LENGTH) -> int:
    """What a symbol is taken for."""
    return _of_facts(symbol.facts, unknown)


def representative_extent(e: PrimExpr, unknown: int = LENGTH) -> int | None:
    """What an extent over sizes is taken for; None if it depends on anything else."""
    found = _of_expr(e, unknown)
    return None if found is None else max(0, found)


def _of_facts(facts: Facts, unknown: int) -> int:
    if facts.typical is not None:
        return facts.typical
    if facts.max is not None and facts.max <= GUARDING:
        return facts.max
    step = facts.multiple_of
    return -(-max(unknown, facts.min) // step) * step


def _of_expr(e: PrimExpr, unknown: int) -> int | None:
    match e:
        case Imm(int() as value):
            return value
        case SizeVar(_, facts):
            return _of_facts(facts, unknown)
        case Binary(op, a, b):
            x, y = _of_expr(a, unknown), _of_expr(b, unknown)
            if x is None or y is None:
                return None
            match op:
                case "add":
                    return x + y
                case "sub":
                    return x - y
                case "mul":
                    return x * y
                case "min":
                    return min(x, y)
                case "max":
                    return max(x, y)
                case "floordiv":
                    return x // y if y else None
                case "floormod":
                    return x % y if y else None
                case _:
                    return None
        case _:
            return None
