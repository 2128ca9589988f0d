"""A model in a Python file: what `unity run model.py` takes of it, and how it is found there.

The file is run as an import runs it, so that ``if __name__ == "__main__":`` is left out. Of what it
defines, a model is an `IRModule` or a function decorated with ``@script.function``: the one that
was named, ``model.py:NAME``, or ``main``, or the only one that no other calls.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from unity.errors import UnityError

from .paths import program_in

if TYPE_CHECKING:
    from unity.ir.module import IRModule


def module_of(path: Path) -> IRModule:
    """The model that a Python file defines.

    Args:
        path: ``model.py`` or ``model.py:NAME``.

    Raises:
        UnityError: Running the file fails, or there is no such model in it, or more than one.
    """
    from unity.compilation import main_first
    from unity.ir.module import IRModule
    from unity.script import ScriptFunction

    found = program_in(path)
    assert found is not None, path
    file, name = found
    models = {
        key: value
        for key, value in _run(file).items()
        if isinstance(value, IRModule | ScriptFunction)
    }
    chosen = name or ("main" if "main" in models else _only(file, models))
    if chosen not in models:
        raise UnityError(
            f"{file} has no model {chosen!r}", hint=f"it has: {', '.join(models) or '(none)'}"
        )
    model = models[chosen]
    return main_first(model if isinstance(model, IRModule) else model.module())


def _only(file: Path, models: Mapping[str, object]) -> str:
    """The one model that is not part of another.

    Raises:
        UnityError: There is none, or there are several.
    """
    from unity.script import ScriptFunction

    functions = [f for f in models.values() if isinstance(f, ScriptFunction)]
    inner = [other for f in functions for other in f.refers.values() if other is not f]
    roots = [name for name, model in models.items() if not any(model is f for f in inner)]
    if not roots:
        raise UnityError(
            f"{file} defines no model",
            hint="a model is a function decorated with @script.function, or a unity.IRModule",
        )
    if len(roots) > 1:
        raise UnityError(
            f"{file} defines {len(roots)} models: {', '.join(roots)}",
            hint=f"say which: {file}:{roots[0]}",
        )
    return roots[0]


def _run(file: Path) -> dict[str, object]:
    """The names that a file defines.

    Raises:
        UnityError: It can't be run, or another module has its name.
    """
    name = file.stem
    if name in sys.modules:
        raise UnityError(
            f"{file} has the name of a module that is in use, {name!r}", hint="rename the file"
        )
    whole = file.resolve()
    spec = spec_from_file_location(name, whole)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(whole.parent))  # as Python does for a program
    try:
        spec.loader.exec_module(module)
    except UnityError:
        raise
    except Exception as error:
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(whole)]
        where = f"{file}:{lines[-1].lineno}" if lines else str(file)
        raise UnityError(f"{where}: {type(error).__name__}: {error}") from error
    return dict(vars(module))
