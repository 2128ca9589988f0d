"""What each binding of a function needs to stand behind: what may not be reordered.

Apart from `Graph`, which is about what patterns match: here checks count too (a `match_cast` stands
between what it is given and what reads it), and symbols, whose values come with a tensor without
any variable naming it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from unity.ir.dims import Symbol
from unity.ir.graph import Body, Var
from unity.ir.symbols.mentioned import binding_mentions
from unity.ir.visit import free_vars


def needs_of(body: Body, known: AbstractSet[Symbol]) -> dict[Var, list[Var]]:
    """For each variable bound in a body, nested ones aside, in order, those that come before it.

    Operands first, then what binds symbols that the binding mentions: a size that was checked or
    that depends on data. Variables that are not bound here (parameters) are among them.

    Args:
        body: The body.
        known: Symbols bound outside.
    """
    binder: dict[Symbol, Var] = {}
    found: dict[Var, list[Var]] = {}
    for block in body.blocks:
        for binding in block.bindings:
            var = binding.var
            needed = dict.fromkeys(sorted(free_vars(binding.value), key=lambda v: v.name))
            for symbol in sorted(binding_mentions(binding) - known, key=lambda s: s.name):
                first = binder.setdefault(symbol, var)
                if first is not var:
                    needed.setdefault(first)
            found[var] = list(needed)
    return found
