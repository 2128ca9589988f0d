"""A module as a Python program: imports, weights read from a file beside it, decorated functions.

`print_module` gives the functions; a decorated function must stand below those that it calls. Those
that call each other in a circle stand in a text, which `script.parse` reads.
"""

from __future__ import annotations

import re
from pathlib import Path

from unity import script
from unity.ir.graph import Call, Function, FunctionRef
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import constants_of, print_module

WEIGHTS = "WEIGHTS"
_PROGRAM = '''"""{stem}: migrated from Relay by ``unity migrate``.

Run this file: it compiles the model and tells what that takes and gives.
"""

from __future__ import annotations
{libraries}
import unity
from unity import script
{words}{weights}
{functions}

if __name__ == "__main__":
    executable = unity.compile(main)
    print(executable.signature)
'''
_CIRCLE = '''# These call each other: read at once, as a decorated one knows those above it.
main = script.parse(
    r"""
{}
"""{}
)'''
_LIBRARIES = """
from pathlib import Path

from safetensors.numpy import load_file
"""
_LOADED = f'\n{WEIGHTS} = load_file(Path(__file__).with_suffix(".safetensors"))\n'


def program_of(module: IRModule, file: str) -> str:
    """The source of a program whose ``main`` is that of a module.

    Args:
        module: Graph functions alone.
        file: What it was made of, which it is called by.
    """
    order = _callees_first(module)
    has_weights = bool(constants_of(module))
    if order is None:
        words, functions = (
            "",
            _CIRCLE.format(print_module(module).strip(), has_weights * f", {WEIGHTS}"),
        )
    else:
        ordered = IRModule({name: module[name] for name in order}, module.attrs)
        functions = print_module(ordered, WEIGHTS)
        used = set(re.findall(r"\w+", functions))
        known = [w for w in script.__all__ if w in used and w not in ("function", "module")]
        words = f"from unity.script import {', '.join(sorted(known))}\n"
    return _PROGRAM.format(
        stem=Path(file).stem,
        libraries=_LIBRARIES if has_weights else "",
        words=words,
        weights=_LOADED if has_weights else "",
        functions=functions,
    )


def _callees_first(module: IRModule) -> list[str] | None:
    """The names of a module's functions, each behind those that it calls; None of a circle."""
    calls = {name: _called(f) - {name} for name, f in module.graph_functions().items()}
    found: list[str] = []
    while calls:
        ready = [name for name, callees in calls.items() if callees <= set(found)]
        if not ready:
            return None
        found += ready
        for name in ready:
            del calls[name]
    return found


def _called(function: Function) -> set[str]:
    calls = [b.value for b in walk_bindings(function) if isinstance(b.value, Call)]
    return {c.callee.name for c in calls if isinstance(c.callee, FunctionRef)}
