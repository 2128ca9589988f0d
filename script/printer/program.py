"""Whole modules as Python files: imports, symbols, decorated functions, and the module itself.

`print_module` gives the functions in their order; a decorated function that Python runs must stand
below those that it names. Those that name each other in a circle stand in a text, which
`unity.script.parse` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from unity.errors import UnityError
from unity.ir.dtype import SHORT_NAMES
from unity.ir.graph import Body, Expr, FunctionRef
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.visit import bodies_of, graph_children

from .constants import INLINE_LIMIT
from .literals import NO_SYMBOLS, attrs_text
from .module import constants_of, print_module

_WORDS = frozenset({"Buffer", "R", "T", "Tensor", "dim", *SHORT_NAMES})
"""Words of the language that a program imports; of others it says ``script.function``."""
_WIDTH = 100
_INLINE = 1 << 16
"""Elements of the largest constant that a program holds as text."""
_CIRCLE = '''# These name each other: they are read at once; a decorated one knows those above it.
{} = script.parse(
    r"""
{}
"""{}
)'''


def program_text(module: IRModule, name: str = "") -> str:
    """A module as a file that Python runs.

    Args:
        module: The module.
        name: What the file calls it; empty for functions that need no module.

    Raises:
        UnityError: It has constants that are too large for a text.
    """
    large = constants_of(module, _INLINE)
    if large:
        raise UnityError(
            f"{len(large)} constants are too large for a text: {', '.join(large)}",
            hint="unity.script.print_module names them, unity.script.constants_of has their data",
        )
    if name in module:
        name = next(n for k in range(1, len(module) + 2) if (n := f"{name}_{k}") not in module)
    order = callees_first(module)
    if order is None:
        return f"from unity import script\n\n{in_a_circle(module, name or 'module')}\n"
    functions = print_module(IRModule({n: module[n] for n in order}), inline=_INLINE)
    words = words_of(functions)
    imports = f"from unity.script import {', '.join(words)}\n" if words else ""
    gap = "\n\n" if functions.startswith("@") else "\n"
    made = _made(module, name or "module") if name or module.attrs else ""
    return (
        "from __future__ import annotations\n\nfrom unity import script\n"
        f"{imports}{gap}{functions}{made}"
    )


def words_of(functions: str) -> list[str]:
    """The words of the language that a text uses, as they are imported."""
    return sorted(_WORDS & set(re.findall(r"\w+", functions)), key=lambda w: (not w.isupper(), w))


def in_a_circle(module: IRModule, name: str, constants: str = "") -> str:
    """Functions that name each other, read from a text.

    Args:
        module: The module.
        name: What the program calls it.
        constants: What the program calls the data of large constants.
    """
    text = print_module(module, inline=INLINE_LIMIT if constants else _INLINE).strip()
    return _CIRCLE.format(name, text, f", {constants}" if constants else "")


def callees_first(module: IRModule) -> list[str] | None:
    """The names of a module's definitions, each behind those it names; None of a circle."""
    named = {name: set(_named(definition)) - {name} for name, definition in module.items()}
    found: list[str] = []
    while named:
        ready = [name for name, others in named.items() if others <= set(found)]
        if not ready:
            return None
        found += ready
        for name in ready:
            del named[name]
    return found


def _made(module: IRModule, name: str) -> str:
    """The lines that make the module: of the functions that no other names, and its attributes."""
    named = {o for n, definition in module.items() for o in _named(definition) if o != n}
    parts = [n for n in module if n not in named]
    if module.attrs:
        parts.append(f"attrs={attrs_text(module.attrs, NO_SYMBOLS)}")
    line = f"{name} = script.module({', '.join(parts)})"
    if len(line) > _WIDTH:
        line = f"{name} = script.module(\n" + "".join(f"    {p},\n" for p in parts) + ")"
    return f"\n\n{line}\n"


def _named(of: Definition | Expr | Body) -> Iterator[str]:
    """The definitions that one names, each as often as it does."""
    match of:
        case FunctionRef(name):
            yield name
        case Body():
            for block in of.blocks:
                for binding in block.bindings:
                    yield from _named(binding.value)
            yield from _named(of.result)
        case PrimFunc() | ExternFunc():
            return
        case _:
            for part in (*graph_children(of), *bodies_of(of)):
                yield from _named(part)
