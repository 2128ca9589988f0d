"""A module as a Python program: imports, weights read from a file beside it, decorated functions.

`print_module` gives the functions; a decorated function must stand below those that it calls. Those
that call each other in a circle stand in a text, which `script.parse` reads.
"""

from __future__ import annotations

from pathlib import Path

from unity.ir.module import IRModule
from unity.script import constants_of, print_module
from unity.script.printer.program import callees_first, in_a_circle, words_of

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
    order = callees_first(module)
    has_weights = bool(constants_of(module))
    if order is None:
        words, functions = "", in_a_circle(module, "main", has_weights * WEIGHTS)
    else:
        ordered = IRModule({name: module[name] for name in order}, module.attrs)
        functions = print_module(ordered, WEIGHTS)
        words = f"from unity.script import {', '.join(words_of(functions))}\n"
    return _PROGRAM.format(
        stem=Path(file).stem,
        libraries=_LIBRARIES if has_weights else "",
        words=words,
        weights=_LOADED if has_weights else "",
        functions=functions,
    )
