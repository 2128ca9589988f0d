"""What variables were copied from: call sites of inlined functions keep the names users know."""

from __future__ import annotations

from unity.ir.graph import Function

LAID_OUT = "_blocked"
"""What layout conversion puts behind a variable's name."""
INLINED = "inlined"
"""Attribute of a function: pairs of a variable's name and ``function/variable`` it is a copy of."""


def origins_of(function: Function) -> dict[str, tuple[str, ...]]:
    """The names that variables had where they were inlined from, by name; the first is oldest."""
    found: dict[str, tuple[str, ...]] = {}
    pairs = function.attrs.get(INLINED, ())
    for pair in pairs if isinstance(pairs, tuple) else ():
        match pair:
            case (str(name), str(origin)):
                found[name] = (*found.get(name, ()), origin)
            case _:
                pass
    return found
