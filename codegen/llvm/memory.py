"""Loads and stores: where an access goes (one element, a run, anywhere) and under which mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity.ir.dtype import INT64, DType

from .arithmetic import in_range
from .emitter import Emitter, int_text, steps_text
from .narrow import narrow, widen
from .types import I1, Ty, is_narrow, memory_type, ty, value_type


@dataclass(frozen=True, slots=True)
class At:
    """One element, for all lanes: its index (i64)."""

    index: str


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive elements: the index of the first, and whether they go backwards from there."""

    index: str
    backwards: bool = False


MOST_APART = 4
"""Elements that lie so far apart are loaded with those between them, and picked."""


@dataclass(frozen=True, slots=True)
class Strided:
    """Elements at even distances, 2 to `MOST_APART`: the index of the first, and the distance."""

    index: str
    stride: int


@dataclass(frozen=True, slots=True)
class Scattered:
    """An element for each lane: the vector of indices (i64), counted from the element `base`."""

    indices: str
    base: str = "0"


Place: TypeAlias = At | Run | Strided | Scattered


def load(em: Emitter, pointer: str, dtype: DType, place: Place, mask: str | None) -> str:
    """The value at a place, as a register's value; masked lanes read nothing and are zero.

    Args:
        em: Where to emit.
        pointer: The buffer's.
        dtype: The access's, with lanes; an `At` place gives a scalar load, splat to the lanes.
        place: Which elements.
        mask: One bit a lane (for `At`, a single bit), None for all.
    """
    element, m = memory_type(dtype.element), memory_type(dtype)
    match place:
        case At(index):
            address = em.address(pointer, index, element, inbounds=mask is None)
            if mask is None:
                raw = em.read(f"load {element.text}, ptr {address}, align {dtype.bytes}", pointer)
            else:
                raw = _load_where(em, address, element, dtype.bytes, mask)
            return em.splat(_decode(em, dtype.element, raw), value_type(dtype))
        case Run(index, backwards):
            first = _first(em, index, dtype.lanes, backwards)
            lanes = _reversed(em, mask, m.mask) if backwards and mask is not None else mask
            raw = _run(em, pointer, dtype, first, lanes)
            return _decode(em, dtype, _reversed(em, raw, m) if backwards else raw)
        case Strided(index, stride) if mask is None or dtype.bits in (32, 64):
            return _decode(em, dtype, _picked(em, pointer, dtype, index, stride, mask))
        case Strided() | Scattered():
            indices, base = _scattered(place, dtype.lanes)
            first = em.address(pointer, base, element, inbounds=False)
            raw = em.read(
                f"call {m.text} @llvm.masked.gather.{m.suffix}.v{m.lanes}p0("
                f"{_pointers(em, first, indices, element, m, dtype.bytes)}, "
                f"{m.mask.text} {mask or int_text(1, m.mask)}, {m.text} {_zero(m)})",
                pointer,
            )
            return _decode(em, dtype, raw)


def _run(em: Emitter, pointer: str, dtype: DType, first: str, mask: str | None) -> str:
    """Consecutive elements as memory holds them; those that are masked are zero."""
    element, m = memory_type(dtype.element), memory_type(dtype)
    address = em.address(pointer, first, element, inbounds=mask is None)
    if mask is None:
        return em.read(f"load {m.text}, ptr {address}, align {dtype.bytes}", pointer)
    return em.read(
        f"call {m.text} @llvm.masked.load.{m.suffix}.p0(ptr align {dtype.bytes} "
        f"{address}, {m.mask.text} {mask}, {m.text} {_zero(m)})",
        pointer,
    )


def _zero(t: Ty) -> str:
    return "zeroinitializer" if t.is_float else int_text(0, t)


def stretches(offsets: Sequence[int]) -> list[int]:
    """The first of some distances, and each other one that lies a register or more behind those.

    >>> stretches((0, 100, 1, 101)), stretches((3, 3, 2, 2)), stretches((0, 7, 14, 21))
    ([0, 100], [2], [0, 7, 14, 21])
    """
    found: list[int] = []
    for offset in sorted(offsets):
        if not found or offset - found[-1] >= len(offsets):
            found.append(offset)
    return found


def load_near(em: Emitter, pointer: str, dtype: DType, index: str, offsets: tuple[int, ...]) -> str:
    """The elements at some distances from an index: those of a stretch together, put in order.

    Args:
        em: Where to emit.
        pointer: The buffer's.
        dtype: The access's, with lanes.
        index: What the distances are counted from.
        offsets: The distance of each lane.
    """
    element, m = memory_type(dtype.element), memory_type(dtype)
    value = ""
    for first in stretches(offsets):
        mine = {k: p - first for k, p in enumerate(offsets) if 0 <= p - first < len(offsets)}
        near = f"<{max(mine.values()) + 1} x {element.text}>"
        address = em.address(pointer, em.add(index, str(first)), element)
        raw = em.read(f"load {near}, ptr {address}, align {dtype.bytes}", pointer)
        order = ", ".join(f"i32 {mine.get(k, 0)}" for k in range(m.lanes))
        placed = em.pure(f"shufflevector {near} {raw}, {near} poison, <{m.lanes} x i32> <{order}>")
        both = [k + m.lanes if k in mine else k for k in range(m.lanes)]
        value = _shuffled(em, m, value, placed, both) if value else placed
    return _decode(em, dtype, value)


def _picked(
    em: Emitter, pointer: str, dtype: DType, index: str, stride: int, mask: str | None
) -> str:
    """Elements at even distances, from as many runs as there are elements between two of them.

    The last run ends at the last element, so that nothing behind it is read.
    """
    m, lanes = memory_type(dtype), dtype.lanes
    last = (lanes - 1) * stride + 1 - lanes
    begins = [min(k * lanes, last) for k in range(stride)]
    at = [min(lane * stride // lanes, stride - 1) for lane in range(lanes)]
    value = "poison"
    for k, begin in enumerate(begins):
        mine = {lane * stride - begin: lane for lane in range(lanes) if at[lane] == k}
        if not mine:
            continue
        lit = None if mask is None else _of_lanes(em, mask, m.mask, mine)
        run = _run(em, pointer, dtype, em.add(index, str(begin)), lit)
        order = {lane: element + lanes for element, lane in mine.items()}
        value = _shuffled(em, m, value, run, [order.get(lane, lane) for lane in range(lanes)])
    return value


def _of_lanes(em: Emitter, mask: str, t: Ty, lanes: Mapping[int, int]) -> str:
    """A mask whose elements are those of some lanes, and off where there is none."""
    order = [lanes.get(k, t.lanes) for k in range(t.lanes)]
    return _shuffled(em, t, mask, "zeroinitializer", order)


def _shuffled(em: Emitter, t: Ty, a: str, b: str, order: Sequence[int]) -> str:
    picked = ", ".join(f"i32 {k}" for k in order)
    return em.pure(f"shufflevector {t.text} {a}, {t.text} {b}, <{t.lanes} x i32> <{picked}>")


def _scattered(place: Strided | Scattered, lanes: int) -> tuple[str, str]:
    """The indices of all lanes, and the element that they are counted from."""
    if isinstance(place, Scattered):
        return place.indices, place.base
    return steps_text(value_type(INT64.with_lanes(lanes)), place.stride), place.index


def store(
    em: Emitter,
    pointer: str,
    dtype: DType,
    place: Place,
    value: str,
    mask: str | None,
    *,
    streaming: bool = False,
    first_lanes: bool = False,
) -> None:
    """Write a register's value; masked lanes write nothing.

    With `streaming`, past the caches, to a multiple of the register's size. With `first_lanes`, the
    lanes that are not masked are some of the first.
    """
    element, m = memory_type(dtype.element), memory_type(dtype)
    raw = _encode(em, dtype, value)
    match place:
        case At(index):
            address = em.address(pointer, index, element, inbounds=mask is None)
            text = f"store {m.text} {raw}, ptr {address}, align {dtype.bytes}"
            if mask is None:
                em.write(text, pointer)
                return
            then, after = em.new_label("store"), em.new_label("after")
            em.branch_if(mask, then, after)
            em.label(then)
            em.do(text)
            em.branch(after)
            em.label(after)
        case Run(index, backwards):
            first = _first(em, index, dtype.lanes, backwards)
            address = em.address(pointer, first, element, inbounds=mask is None)
            ordered = _reversed(em, raw, m) if backwards else raw
            if mask is None:
                how = f"align {dtype.bytes}"
                if streaming:
                    how = f"align {dtype.lanes * dtype.bits // 8}, !nontemporal !{{i32 1}}"
                em.write(f"store {m.text} {ordered}, ptr {address}, {how}", pointer)
                return
            halves = first_lanes and not backwards and m.lanes.bit_count() == 1
            if halves and not em.unit.abilities.masks:
                _store_first(em, address, m, dtype.bytes, raw, mask)
                return
            lanes = _reversed(em, mask, m.mask) if backwards else mask
            em.write(
                f"call void @llvm.masked.store.{m.suffix}.p0({m.text} {ordered}, "
                f"ptr align {dtype.bytes} {address}, {m.mask.text} {lanes})",
                pointer,
            )
        case Strided() | Scattered():
            indices, base = _scattered(place, dtype.lanes)
            first = em.address(pointer, base, element, inbounds=False)
            em.write(
                f"call void @llvm.masked.scatter.{m.suffix}.v{m.lanes}p0({m.text} {raw}, "
                f"{_pointers(em, first, indices, element, m, dtype.bytes)}, "
                f"{m.mask.text} {mask or int_text(1, m.mask)})",
                pointer,
            )


def _store_first(em: Emitter, address: str, m: Ty, size: int, value: str, mask: str) -> None:
    """Write the first lanes, those that are on: by halves, as a store under a mask is slow.

    ``vmaskmovps`` takes some twenty cycles on AMD's cores, and without AVX each lane is asked for.
    How many lanes there are is the same for many rows, so that the branches are foreseen.
    """
    bits = f"i{m.lanes}"
    packed = em.pure(f"bitcast {m.mask.text} {mask} to {bits}")
    count = em.pure(f"call {bits} @llvm.ctpop.{bits}({bits} {packed})")
    width, rest = m.lanes, value
    _store_if(em, f"icmp eq {bits} {packed}, -1", f"{m.text} {value}, ptr {address}", size)
    while width > 1:
        width //= 2
        whole, half = ty(m.element, 2 * width), ty(m.element, width)
        low, high = (_part(em, whole, half, rest, begin) for begin in (0, width))
        some = em.pure(f"and {bits} {count}, {width}")
        taken = em.pure(f"icmp ne {bits} {some}, 0")
        _store_if(em, f"icmp ne {bits} {some}, 0", f"{half.text} {low}, ptr {address}", size)
        step = em.pure(f"select i1 {taken}, i64 {width * size}, i64 0")
        address = em.pure(f"getelementptr i8, ptr {address}, i64 {step}")
        rest = em.pure(f"select i1 {taken}, {half.text} {high}, {half.text} {low}")


def _store_if(em: Emitter, test: str, what: str, align: int) -> None:
    condition, then, after = em.pure(test), em.new_label("store"), em.new_label("after")
    em.branch_if(condition, then, after)
    em.label(then)
    em.do(f"store {what}, align {align}")
    em.branch(after)
    em.label(after)


def _part(em: Emitter, whole: Ty, part: Ty, value: str, begin: int) -> str:
    """Some neighbouring lanes of a vector."""
    if part.lanes == 1:
        return em.pure(f"extractelement {whole.text} {value}, i64 {begin}")
    picked = ", ".join(f"i32 {begin + k}" for k in range(part.lanes))
    return em.pure(
        f"shufflevector {whole.text} {value}, {whole.text} poison, <{part.lanes} x i32> <{picked}>"
    )


def _load_where(em: Emitter, address: str, t: Ty, align: int, mask: str) -> str:
    text = f"load {t.text}, ptr {address}, align {align}"
    then, after, before = em.new_label("load"), em.new_label("after"), em.block
    em.branch_if(mask, then, after)
    em.label(then)
    value = em.effect(text)
    em.branch(after)
    em.label(after)
    zero = "0.0" if t.is_float else "0"
    return em.effect(f"phi {t.text} [ {value}, %{then} ], [ {zero}, %{before} ]")


def any_lane(em: Emitter, mask: str, t: Ty) -> str:
    """Whether any lane of a mask is on."""
    if t.lanes == 1:
        return mask
    return em.pure(f"call i1 @llvm.vector.reduce.or.{t.suffix}({t.text} {mask})")


def all_lanes(em: Emitter, mask: str, t: Ty) -> str:
    """Whether every lane of a mask is on."""
    if t.lanes == 1:
        return mask
    return em.pure(f"call i1 @llvm.vector.reduce.and.{t.suffix}({t.text} {mask})")


def both(em: Emitter, a: str | None, b: str | None, t: Ty = I1) -> str | None:
    """The conjunction of two masks, where None is all."""
    if a is None or b is None:
        return b if a is None else a
    return em.pure(f"and {t.text} {a}, {b}")


def _first(em: Emitter, index: str, lanes: int, backwards: bool) -> str:
    return em.add(index, str(1 - lanes)) if backwards else index


def _reversed(em: Emitter, value: str, t: Ty) -> str:
    order = ", ".join(f"i32 {i}" for i in range(t.lanes - 1, -1, -1))
    return em.pure(f"shufflevector {t.text} {value}, {t.text} poison, <{t.lanes} x i32> <{order}>")


def _pointers(em: Emitter, pointer: str, indices: str, element: Ty, m: Ty, align: int) -> str:
    addresses = em.pure(f"getelementptr {element.text}, ptr {pointer}, <{m.lanes} x i64> {indices}")
    return f"<{m.lanes} x ptr> align {align} {addresses}"


def _decode(em: Emitter, dtype: DType, raw: str) -> str:
    """A register's value from what memory holds."""
    m = memory_type(dtype)
    if is_narrow(dtype):
        return widen(em, dtype, raw)
    if dtype.kind == "bool":
        return em.pure(f"icmp ne {m.text} {raw}, {int_text(0, m)}")
    return in_range(em, dtype, raw)


def _encode(em: Emitter, dtype: DType, value: str) -> str:
    """What memory is to hold, from a register's value."""
    m = memory_type(dtype)
    if is_narrow(dtype):
        return narrow(em, dtype, value)
    if dtype.kind == "bool":
        return em.pure(f"zext {value_type(dtype).text} {value} to {m.text}")
    if dtype.bits < 8:
        return em.pure(f"and {m.text} {value}, {int_text((1 << dtype.bits) - 1, m)}")
    return value
