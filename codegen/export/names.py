"""What things are called in C: the library's prefix, and functions that want the same name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from unity.errors import UnityError
from unity.runtime import bytecode as bc


def prefix_of(path: Path) -> str:
    """What C's functions begin with, by the library's file.

    >>> prefix_of(Path("libmy-model.so.1"))
    'my_model'

    Raises:
        UnityError: The name can't begin one of C's, or is the runtime's own.
    """
    name = re.sub(r"\W", "_", path.name.partition(".")[0].removeprefix("lib"), flags=re.ASCII)
    if not name or name[0].isdigit() or f"{name}_".startswith("unity_"):
        raise UnityError(
            f"{path.name} gives no name to C's functions", hint="call it libmodel.so, for instance"
        )
    return name


def leaf_name(code: bc.FunctionCode, path: Sequence[int]) -> str:
    """What an input is called: its parameter's name, and where in that it is if it is a tuple."""
    first, *fields = path
    return code.params[first].name + "".join(f"[{field}]" for field in fields)


def name_gaps(prefix: str, functions: Sequence[str]) -> list[str]:
    """What of functions' names C can't be given.

    >>> name_gaps("model", ["main", "main_shapes", "message"])  # doctest: +NORMALIZE_WHITESPACE
    ['main_shapes would be model_main_shapes in C, as the shapes of main are: rename one',
     'message would be model_message in C, as the text of results is: rename it']
    """
    own = {"message": "the text of results is", "set_threads": "the number of threads is"}
    shapes = {f"{name}_shapes": name for name in functions}
    gaps: list[str] = []
    for name in functions:
        if not (name.isascii() and name.isidentifier()):
            gaps.append(f"{name}: C has no such names")
        if name in shapes:
            which = f"the shapes of {shapes[name]} are"
            gaps.append(f"{name} would be {prefix}_{name} in C, as {which}: rename one")
        if name in own:
            gaps.append(f"{name} would be {prefix}_{name} in C, as {own[name]}: rename it")
    return gaps
