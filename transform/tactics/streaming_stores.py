"""Which results a kernel writes past the caches.

A store to a line that is in no cache reads the line first, and drives out another. Where a kernel
touches far more memory than the caches hold, nobody finds its result there anyway: written past
them, it takes two thirds of the traffic.

Measured on a Xeon with 2 MB of second and a share of 480 MB of last cache, ``x + 1`` of so many MB,
plain and past the caches: 4 MB 0.29 / 0.31 ms, 8 MB 0.57 / 0.60, 16 MB 1.36 / 1.19, 24 MB
1.85 / 1.80, 32 MB 3.5 / 2.4, 64 MB 10.2 / 5.0; on two threads 16 MB 0.57 / 0.60, 32 MB 1.31 / 1.22,
64 MB 4.9 / 2.4, 256 MB 21.9 / 10.7. GELU of 64 MB takes 9.4 / 6.9 ms. A softmax whose result is
also read meanwhile gets slower (11.9 / 16.5 ms).

Fetching ahead did not help a copy: of what is read or of what is written, 512 bytes to 8 KB ahead,
alone or together, and two or four rows at a time were all within 1 % of the plain loop at 4 MB
(275 us) and at 16 MB. So softmax of 4 MB can't be faster than that; in C++ it takes 276 us, with
the next row fetched (333 without).
"""

from __future__ import annotations

from unity.ir.stmt import PrimFunc, Store
from unity.ir.visit import stmt_loads, walk_stmt
from unity.machine.target import Target

from ..blocks.extents import number, product

TIMES = 2
"""How many times the cache a kernel touches at least."""


def past_caches(func: PrimFunc, target: Target) -> tuple[int, ...]:
    """The positions of the parameters that a kernel had better write past the caches.

    Args:
        func: A kernel.
        target: Its caches.
    """
    sizes = [number(product(b.shape)) for b in func.buffers]
    bytes_ = [(size or 0) * b.dtype.bytes for size, b in zip(sizes, func.buffers, strict=True)]
    enough = TIMES * min(target.l3_bytes, target.machine.l3_counted_bytes)
    if sum(bytes_) < enough:
        return ()
    written = {s.buffer for s in walk_stmt(func.body) if isinstance(s, Store)}
    read = {x.buffer for s in walk_stmt(func.body) for x in stmt_loads(s)}
    return tuple(
        at
        for at, b in enumerate(func.buffers)
        if b in written and b not in read and bytes_[at] * 4 >= enough
    )
