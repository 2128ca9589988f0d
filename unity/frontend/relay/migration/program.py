"""A module as a Python program: imports, weights read from a file beside it, decorated functions.

`print_module` gives the functions; a decorated function must stand below those that it calls.
"""

from __future__ import annotations

import re
from pathlib import Path

from unity import script
from unity.errors import UnsupportedError
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
from unity.script import {words}
{weights}
{functions}

if __name__ == "__main__":
    executable = unity.compile(main)
    print(executable.signature)
'''
_LIBRARIES = """
from pathlib import Path

from safetensors.numpy import load_file
"""
_LOADED = f'\n{WEIGHTS} = load_file(Path(__file__).with_suffix(".safetensors"))\n'


def program_of(module: IRModule, file: str) -> str:
    """The source of a program whose function ``main`` is that of a module.

    Args:
        module: Graph functions alone.
        file: What it was made of, which it is called by.

    Raises:
        UnsupportedError: Functions call each other in a circle, which no order can show.
    """
    ordered = IRModule({name: module[name] for name in _callees_first(module)}, module.attrs)
    text = print_module(ordered, WEIGHTS)
    has_weights = bool(constants_of(module))
    used = set(re.findall(r"\w+", text))
    words = sorted(w for w in script.__all__ if w in used and w not in ("function", "module"))
    return _PROGRAM.format(
        stem=Path(file).stem,
        libraries=_LIBRARIES if has_weights else "",
        words=", ".join(words),
        weights=_LOADED if has_weights else "",
        functions=text,
    )


def _callees_first(module: IRModule) -> list[str]:
    """The names of a module's functions, each behind those that it calls."""
    calls = {name: _called(f) - {name} for name, f in module.graph_functions().items()}
    found: list[str] = []
    while calls:
        ready = [name for name, callees in calls.items() if callees <= set(found)]
        if not ready:
            raise UnsupportedError(
                "the model can't be written as a program",
                [f"functions that call each other: {', '.join(calls)}"],
            )
        found += ready
        for name in ready:
            del calls[name]
    return found


def _called(function: Function) -> set[str]:
    calls = [b.value for b in walk_bindings(function) if isinstance(b.value, Call)]
    return {c.callee.name for c in calls if isinstance(c.callee, FunctionRef)}
