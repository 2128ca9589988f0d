"""``unity_fits_K``: whether every size of a function is one that memory could ever have.

Sizes are products of symbols: ``n ** 4`` floats at n = 65536 are 2**66 bytes, 0 modulo 2**64, and
an arena of none would be written to. A plan is therefore made only where no size, nor any part of
one, reaches `MOST`. That is decided by one comparison where all symbols are small, and else in
floats, which do not wrap. What does not fit is left to the bytecode, which says what is too large;
so is what divides by a size that is 0.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import assert_never

from unity.codegen.vm.native.layout import Layout, NotNativeError, byte_count, resolve
from unity.codegen.vm.native.text import Text
from unity.runtime import bytecode as bc
from unity.runtime.bytecode import spec_sizes
from unity.runtime.bytecode.sizes import Size, SizeOp, Slot, parts_of, slots_of

MOST = 1 << 62
"""More bytes than any memory has, and few enough that two such numbers can be added."""


def planned_sizes(layout: Layout) -> list[Size]:
    """The sizes that a call computes with before it knows of any data, those in bytes first."""
    entry = {i for s in _of_inputs(layout) for i in slots_of(s)}
    return [s for s in _computed_with(layout) if set(slots_of(s)) <= entry]


def late_sizes(layout: Layout) -> list[Size]:
    """Those of tensors for which sizes are read while a function runs, and what is in them."""
    return [s for s in _computed_with(layout) if layout.is_late(s)]


def _computed_with(layout: Layout) -> list[Size]:
    """All sizes of a function in terms of the symbols that have values, those in bytes first."""
    places = [*layout.places.values(), *layout.late.values()]
    places += [byte_count(spec) for spec in layout.outputs]
    others = [s for spec in layout.outputs for s in spec.shape or ()]
    for instruction in layout.code.code:
        match instruction:
            case bc.View(_, _, offset, shape):
                others += [offset, *shape]
            case bc.CallKernel(_, _, sizes):
                others += sizes
            case bc.Match(_, spec, _, known):
                others += [*spec_sizes(spec), *spec_sizes(known)]
            case _:
                pass
    lengths = (*layout.lengths, *layout.late_lengths)
    return list(dict.fromkeys(resolve(layout, s) for s in (*places, *lengths, *others)))


def require_possible(layout: Layout) -> None:
    """Refuse a function of which no call can fit.

    Raises:
        NotNativeError: A size is a number that is too large, or has one in it.
    """
    if any(n >= MOST for n in _bounds(parts_of(planned_sizes(layout)), 1).values()):
        raise NotNativeError("a tensor is larger than any memory")


def most_bits(sizes: Sequence[Size]) -> int:
    """All of the sizes fit, and their sum, where every symbol has at most so many bits.

    None where one divides by what could be 0: that is looked at each time.
    """
    return 0 if divisors(sizes) else small_bits(sizes)


def small_bits(sizes: Sequence[Size]) -> int:
    """The same where nothing that they divide by is 0."""
    parts = list(parts_of(sizes))

    def fit(bits: int) -> bool:
        bounds = _bounds(parts, (1 << bits) - 1)
        return sum(bounds[s] for s in sizes) < MOST

    return bisect_left(range(1, 63), True, key=lambda bits: not fit(bits))


def _bounds(parts: Iterable[Size], symbol: int) -> dict[Size, int]:
    """What sizes, operands first, and their parts do not exceed if no symbol exceeds a number."""
    found: dict[Size, int] = {}
    for size in parts:
        match size:
            case int():
                found[size] = abs(size)
            case Slot():
                found[size] = symbol
            case SizeOp("add" | "sub", a, b):
                found[size] = found[a] + found[b]
            case SizeOp("mul", a, b):
                found[size] = found[a] * found[b]
            case SizeOp(_, a, b):
                found[size] = max(found[a], found[b])
            case _:
                assert_never(size)
    return found


def fits_text(index: int, sizes: Sequence[Size]) -> str:
    """The text of ``i1 unity_fits_<index>(ptr slots)``."""
    t, made = Text(), dict[Size, str]()
    limit = f"0x{_double(MOST):016X}"
    t.block("entry")
    fits, total = "true", "0.0"
    for size in sizes:
        total = t.let(f"fadd double {total}, {_magnitude(t, size, made)}")
    for value in (*made.values(), total):
        less = t.let(f"fcmp olt double {value}, {limit}")
        fits = t.let(f"and i1 {fits}, {less}")
    for divisor in divisors(sizes):
        some = t.let(f"icmp ne i64 {t.size(divisor)}, 0")
        fits = t.let(f"and i1 {fits}, {some}")
    t.do(f"ret i1 {fits}")
    head = f"define internal i1 @unity_fits_{index}(ptr noalias %slots) nounwind noinline cold"
    return "\n".join([f"{head} {{", *t.lines, "}"])


def computed_fit(t: Text, sizes: Sequence[Size]) -> str:
    """Whether no size, no part of one and no sum of them reaches `MOST`, as they are computed.

    What does is 1 to those that it is a part of: nothing wraps, and nothing traps.
    """
    values: dict[Size, str] = {}
    fits = "true"

    def kept(value: str, *, wraps: str = "false") -> str:
        nonlocal fits
        moved = t.let(f"add i64 {value}, {MOST}")
        small = t.let(f"icmp ult i64 {moved}, {-2 * MOST}")  # unsigned: 2 * MOST
        ok = t.let(f"select i1 {wraps}, i1 false, i1 {small}")
        fits = t.let(f"and i1 {fits}, {ok}")
        return t.let(f"select i1 {ok}, i64 {value}, i64 1")

    for part in parts_of(sizes):
        match part:
            case int():
                values[part] = str(part)
            case Slot():
                values[part] = kept(t.size(part))
            case SizeOp("mul", a, b):
                call = f"@llvm.smul.with.overflow.i64(i64 {values[a]}, i64 {values[b]})"
                both = t.let(f"call {{ i64, i1 }} {call}")
                product, wraps = (t.let(f"extractvalue {{ i64, i1 }} {both}, {k}") for k in (0, 1))
                values[part] = kept(product, wraps=wraps)
            case SizeOp("add" | "sub" as op, a, b):
                values[part] = kept(t.let(f"{op} i64 {values[a]}, {values[b]}"))
            case SizeOp(op, a, b):
                values[part] = t.operation(op, values[a], values[b])
            case _:
                assert_never(part)
    total = "0"
    for size in sizes:
        total = kept(t.let(f"add i64 {total}, {values[size]}"))
    return fits


def divisors(sizes: Iterable[Size]) -> list[Size]:
    """What sizes divide by, numbers aside, each once."""
    divisions = (x for x in parts_of(sizes) if isinstance(x, SizeOp))
    by = (x.b for x in divisions if x.op in ("floordiv", "floormod"))
    return list(dict.fromkeys(b for b in by if not isinstance(b, int)))


def _magnitude(t: Text, size: Size, made: dict[Size, str]) -> str:
    """A float that neither a size nor any part of it exceeds in magnitude."""
    if isinstance(size, int):
        return f"0x{_double(abs(size)):016X}"
    if size not in made:
        made[size] = _computed(t, size, made)
    return made[size]


def _computed(t: Text, size: Slot | SizeOp, made: dict[Size, str]) -> str:
    if isinstance(size, Slot):
        return t.let(f"uitofp i64 {t.size(size)} to double")
    a, b = (_magnitude(t, x, made) for x in (size.a, size.b))
    match size.op:
        case "add" | "sub":
            return t.let(f"fadd double {a}, {b}")
        case "mul":
            return t.let(f"fmul double {a}, {b}")
        case "floordiv":
            return a  # what it is divided by may be less than its own bound
        case "floormod" | "min" | "max":
            first = t.let(f"fcmp ogt double {a}, {b}")
            return t.let(f"select i1 {first}, double {a}, double {b}")
        case _:
            assert_never(size.op)


def _double(value: int) -> int:
    """The bits of a float as LLVM writes them."""
    return int.from_bytes(struct.pack(">d", float(value)), "big")


def _of_inputs(layout: Layout) -> list[Size]:
    return [s for spec in layout.inputs for s in spec_sizes(spec)]
