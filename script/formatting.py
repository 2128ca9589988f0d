"""A program's text in our language, whichever it is written in."""

from __future__ import annotations

import ast

from unity.errors import UnityError

from . import tvmscript
from .parser.text import parse
from .printer import print_module

_TVMSCRIPT = frozenset({"I", "R", "T", "tvm"})


def formatted(text: str, name: str) -> str:
    """The module of a text, in our language.

    Args:
        text: A Python file: a module of TVMScript (``@I.ir_module``, or functions), or functions
            of our language. Nothing in it is run.
        name: The file's name, for errors.

    Raises:
        UnityError: It is neither, or there is a mistake in it.
    """
    try:
        tree = ast.parse(text, name)
    except SyntaxError as error:
        raise UnityError(f"{name}:{error.lineno}: {error.msg}") from None
    roots = {
        ast.unparse(decorator).partition("(")[0].partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        for decorator in node.decorator_list
    }
    if not roots:
        raise UnityError(
            f"{name} holds no program",
            hint="a program is a function decorated with @script.function or @script.prim_func, "
            "or a class decorated with @I.ir_module",
        )
    module = tvmscript.parse(text) if roots & _TVMSCRIPT else parse(text)
    return print_module(module)
