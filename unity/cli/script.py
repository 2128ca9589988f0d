"""``unity script fmt``: a program's text in our language, whichever it is written in."""

from __future__ import annotations

import ast
from pathlib import Path

from unity.errors import UnityError
from unity.script import parse, print_module, tvmscript

_TVMSCRIPT = frozenset({"I", "R", "T", "tvm"})


def formatted(path: Path) -> str:
    """The module of a file, in our language.

    Args:
        path: A Python file: a module of TVMScript (``@I.ir_module``, or functions), or functions
            of our language. Nothing in it is run.

    Raises:
        UnityError: It is neither, or there is a mistake in it.
    """
    text = path.read_text()
    try:
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        raise UnityError(f"{path}:{error.lineno}: {error.msg}") from None
    roots = {
        ast.unparse(decorator).partition("(")[0].partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        for decorator in node.decorator_list
    }
    if not roots:
        raise UnityError(
            f"{path} holds no program",
            hint="a program is a function decorated with @script.function or @script.prim_func, "
            "or a class decorated with @I.ir_module",
        )
    module = tvmscript.parse(text) if roots & _TVMSCRIPT else parse(text)
    return print_module(module)
