"""The order of rows by the digits of their keys: what sorting does for dtypes of up to 32 bits.

Each element becomes a key, an unsigned integer of the same order, beside its position: one number
of 64 bits. Short rows are sorted by insertion, the others digit by digit from the lowest (LSD radix
sort), a pass over the row for each. Both leave equals in their order. Where few of a long row are
wanted, the highest digit tells which elements may be among them, and only those are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from unity import te
from unity.ir.dtype import FLOAT32, INT32, INT64, DType
from unity.ir.prim_expr import Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, PrimWhile, Seq, Stmt, Store

UINT32, UINT64 = DType("uint32"), DType("uint64")
SHORT = 48
"""Elements up to which a row is sorted by insertion."""
WIDE = 16_384
"""Elements from which on a pass takes 11 bits instead of 8."""

FEW = 4
"""Of how many elements at least one is wanted where the others are sorted out first."""


def has_keys(dtype: DType) -> bool:
    """Whether elements have keys of at most 32 bits."""
    return dtype.bits <= 32 and (dtype.is_float or dtype.is_int)


def ordered(x: te.Tensor, along: int, *, descending: bool, first: int | None = None) -> te.Tensor:
    """The indices that sort each row of a tensor whose dtype `has_keys`; equals in their order.

    NaN is greater than every number, and no NaN goes before another; neither do zeros.

    Args:
        x: The tensor.
        along: The axis that a row runs along.
        descending: Whether the largest come first.
        first: How many of each row are wanted, no more than there are; None for all.
    """
    shape = list(x.shape)
    if first is not None:
        shape[along] = imm(first)

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        (source,), (target,) = inputs, outputs
        length = source.shape[along]
        places = [PrimVar(f"i{d}") for d in range(len(source.shape))]

        def at(n: PrimExpr) -> tuple[PrimExpr, ...]:
            return (*places[:along], n, *places[along + 1 :])

        def key(n: PrimExpr) -> PrimExpr:
            return _key(Load(source, at(n)), descending=descending)

        def put(n: PrimExpr, pair: PrimExpr) -> Stmt:
            store = Store(target, at(n), te.cast(te.cast(pair, UINT32), INT64))
            return store if first is None else IfThen(n < first, store)

        known = length.value if isinstance(length, Imm) else None
        if isinstance(known, int) and known <= SHORT:
            stmt = _by_insertion(known, key, put)
        else:
            digit = 11 if isinstance(known, int) and known >= WIDE else 8
            bits = 32 if source.dtype.is_float else source.dtype.bits
            whole = _by_digits(length, digit, -(-bits // digit), key, put)
            if first is None or bits != 32:
                stmt = whole
            elif not isinstance(known, int):
                few = _first_by_digits(length, first, key, put)
                stmt = IfThen(length >= FEW * first, few, whole)
            else:
                long = FEW * first <= known
                stmt = _first_by_digits(length, first, key, put) if long else whole
        for d in reversed(range(len(places))):
            if d != along:
                stmt = For(places[d], imm(0), source.shape[d], stmt, "parallel")
        return stmt

    (found,) = te.extern([(shape, INT64)], [x], body, "order")
    return found


def _key(value: PrimExpr, *, descending: bool) -> PrimExpr:
    """An unsigned integer that is less where the value goes before."""
    if value.dtype.is_float:
        wide = te.cast(value, FLOAT32)
        raw = te.bits(te.select(te.eq(wide, 0.0), imm(0.0, FLOAT32), wide))  # one zero
        ones = te.shift_right(raw, imm(31, INT32))  # all of them where it is negative: no branch
        flipped = te.xor(raw, te.or_(ones, imm(-(1 << 31), INT32)))
        key = te.cast(te.select(te.isnan(wide), imm(-1, INT32), flipped), UINT32)
    elif value.dtype.kind == "int":
        half = 1 << (value.dtype.bits - 1)
        key = te.cast(te.cast(value, INT64) + half, UINT32)
    else:
        key = te.cast(value, UINT32)
    if not descending:
        return key
    bits = 32 if value.dtype.is_float else value.dtype.bits
    return te.xor(key, imm((1 << bits) - 1, UINT32))


def _pair(key: PrimExpr, n: PrimExpr) -> PrimExpr:
    """A key above a position."""
    high = te.shift_left(te.cast(key, UINT64), imm(32, UINT64))
    return te.or_(high, te.cast(n, UINT64))


def _by_insertion(
    length: int,
    key: Callable[[PrimExpr], PrimExpr],
    put: Callable[[PrimExpr, PrimExpr], Stmt],
) -> Stmt:
    """Pairs put among those before them; none are equal, as positions differ."""
    pairs = Buffer("pairs", (imm(max(length, 1)),), UINT64, scope="local")
    hole = Buffer("hole", (imm(1),), INT64, scope="local")
    place, n, m = Load(hole, (imm(0),)), PrimVar("n"), PrimVar("n")
    pair = PrimVar("pair", UINT64)
    before = Load(pairs, (te.max_(place - 1, imm(0)),))
    down = (
        Store(pairs, (place,), Load(pairs, (place - 1,))),
        Store(hole, (imm(0),), place - 1),
    )
    steps = (
        Store(hole, (imm(0),), n),
        PrimWhile(te.and_(place > 0, pair < before), Seq(down)),
        Store(pairs, (place,), pair),
    )
    insert = For(n, imm(0), imm(length), Let(pair, _pair(key(n), n), Seq(steps)))
    result = For(m, imm(0), imm(length), put(m, Load(pairs, (m,))))
    return Allocate(pairs, Allocate(hole, Seq((insert, result))))


def _by_digits(
    length: PrimExpr,
    digit: int,
    passes: int,
    key: Callable[[PrimExpr], PrimExpr],
    put: Callable[[PrimExpr, PrimExpr], Stmt],
    pair: Callable[[PrimExpr], PrimExpr] | None = None,
    room: PrimExpr | None = None,
) -> Stmt:
    """A pass for each digit, the lowest first.

    Args:
        length: How many there are.
        digit: Bits of a pass.
        passes: How many.
        key: Of an element.
        put: Stores what goes to a place.
        pair: The pairs, if they are made already.
        room: For how many there is room, if that is not the length.
    """
    room = length if room is None else room
    size = 1 << digit
    now, later = Buffer("now", (room,), UINT64), Buffer("later", (room,), UINT64)
    counts = Buffer("counts", (imm(passes * size),), INT64)
    running = Buffer("running", (imm(1),), INT64, scope="local")
    value = PrimVar("key", UINT32)

    def slot(of: PrimExpr, nth: int, shift: int) -> PrimExpr:
        """Where the count of a digit is."""
        moved = te.shift_right(of, imm(nth * digit + shift, of.dtype))
        low = te.and_(moved, imm(size - 1, of.dtype))
        return te.cast(low, INT64) + nth * size

    def counted(nth: int) -> Stmt:
        at = PrimVar("at")
        more = Store(counts, (at,), Load(counts, (at,)) + 1)
        return Let(at, slot(value, nth, 0), more)

    n, c = PrimVar("n"), PrimVar("c")
    made = _pair(value, n) if pair is None else pair(n)
    read = Let(
        value,
        key(n),
        Seq((Store(now, (n,), made), *(counted(nth) for nth in range(passes)))),
    )
    stmts: list[Stmt] = [
        For(c, imm(0), imm(passes * size), Store(counts, (c,), imm(0))),
        For(n, imm(0), length, read),
    ]
    stmts += [_begins(counts, running, nth * size, size) for nth in range(passes)]
    source, target = now, later
    for nth in range(passes):
        goes = target if nth + 1 < passes else None
        stmts.append(_moved(source, goes, length, counts, partial(slot, nth=nth, shift=32), put))
        source, target = target, source
    body: Stmt = Seq(tuple(stmts))
    for buffer in (now, later, counts, running):
        body = Allocate(buffer, body)
    return body


def _first_by_digits(
    length: PrimExpr,
    first: int,
    key: Callable[[PrimExpr], PrimExpr],
    put: Callable[[PrimExpr, PrimExpr], Stmt],
) -> Stmt:
    """The pairs whose highest digit is that of the last one wanted or less, and those sorted."""
    size, top = 1 << 11, 32 - 11
    some, counts = Buffer("some", (length,), UINT64), Buffer("counts", (imm(size),), INT64)
    found = Buffer("found", (imm(2),), INT64, scope="local")  # the last digit, and how many pairs
    last, number = Load(found, (imm(0),)), Load(found, (imm(1),))
    value, n, c = PrimVar("key", UINT32), PrimVar("n"), PrimVar("c")
    at = PrimVar("at")
    digit = te.cast(te.shift_right(value, imm(top, UINT32)), INT64)
    more = Let(at, digit, Store(counts, (at,), Load(counts, (at,)) + 1))
    before = Seq(
        (
            Store(found, (imm(0),), te.select(number < first, c, last)),
            Store(found, (imm(1),), number + Load(counts, (c,))),
        )
    )
    taken = te.select(digit <= last, imm(1), imm(0))
    m = PrimVar("n")
    keep = (Store(some, (number,), _pair(value, m)), Store(found, (imm(1),), number + taken))
    count = PrimVar("count")

    def key_of(n: PrimExpr) -> PrimExpr:
        return te.cast(te.shift_right(Load(some, (n,)), imm(32, UINT64)), UINT32)

    sort = _by_digits(count, 8, 4, key_of, put, lambda n: Load(some, (n,)), length)
    stmts: tuple[Stmt, ...] = (
        For(c, imm(0), imm(size), Store(counts, (c,), imm(0))),
        For(n, imm(0), length, Let(value, key(n), more)),
        Store(found, (imm(0),), imm(0)),
        Store(found, (imm(1),), imm(0)),
        For(c, imm(0), imm(size), before),
        Store(found, (imm(1),), imm(0)),
        For(m, imm(0), length, Let(value, key(m), Seq(keep))),
        Let(count, number, sort),
    )
    body: Stmt = Seq(stmts)
    for buffer in (some, counts, found):
        body = Allocate(buffer, body)
    return body


def _begins(counts: Buffer, running: Buffer, first: int, size: int) -> Stmt:
    """Counts of a digit made the places where its elements begin."""
    c, count = PrimVar("c"), PrimVar("count")
    total = Load(running, (imm(0),))
    step = Let(
        count,
        Load(counts, (c,)),
        Seq((Store(counts, (c,), total), Store(running, (imm(0),), total + count))),
    )
    return Seq((Store(running, (imm(0),), imm(0)), For(c, imm(first), imm(size), step)))


def _moved(
    source: Buffer,
    target: Buffer | None,
    length: PrimExpr,
    counts: Buffer,
    slot: Callable[[PrimExpr], PrimExpr],
    put: Callable[[PrimExpr, PrimExpr], Stmt],
) -> Stmt:
    """Pairs in the order of a digit, in another buffer or where the result goes."""
    n, at, to, pair = PrimVar("n"), PrimVar("at"), PrimVar("to"), PrimVar("pair", UINT64)
    store = put(to, pair) if target is None else Store(target, (to,), pair)
    step: Stmt = Seq((Store(counts, (at,), to + 1), store))
    step = Let(at, slot(pair), Let(to, Load(counts, (at,)), step))
    return For(n, imm(0), length, Let(pair, Load(source, (n,)), step))
