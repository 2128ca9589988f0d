"""Whether nothing that stages do keeps their loops from any order, or from running at once."""

from __future__ import annotations

from unity.ir.stmt import Buffer, PrimFunc

from .legality import breach, calls_foreign, late_init, reaches_once
from .site import Site, sites
from .tree import all_blocks


def is_sound(func: PrimFunc) -> bool:
    """Whether blocks of a kernel keep their word, each reached once, in the order of their data.

    What one stores to, none before it touches: so a block may be taken into loops of those before
    it, wherever what it reads is made.
    """
    found = sites(func.body, ())
    if len(found) != len(all_blocks(func.body)):
        return False  # blocks in blocks
    touched: set[Buffer] = set()
    for site in found:
        block = site.block
        stored = {r.buffer for r in block.writes}
        if stored & touched or not _keeps_word(site):
            return False
        touched |= stored | {r.buffer for r in block.reads} | site.decides_by()
    return True


def _keeps_word(site: Site) -> bool:
    block = site.block
    if any(a.kind == "O" for a in block.axes) or not site.is_certain:
        return False
    once = reaches_once(site) if block.init is None else late_init(site) is None
    return once and calls_foreign(block) is None and breach(site) is None
