"""A program's text in our language, whichever it is written in."""

from __future__ import annotations

import ast

from unity.errors import UnityError

from . import tvmscript
from .parser.text import parse
from .printer.program import program_text

_TVMSCRIPT = frozenset({"I", "R", "T", "tvm"})


def formatted(text: str, name: str) -> str:
    """The program of a text in our language, a file that Python runs.

    Args:
        text: A Python file: a module of TVMScript (``@I.ir_module``, or functions), or functions
            of our language. Nothing in it is run.
        name: The file's name, for errors.

    Raises:
        UnityError: It is neither, there is a mistake in it, or its constants are too large.
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
    module = tvmscript.parse(text, file=name) if roots & _TVMSCRIPT else parse(text, file=name)
    return program_text(module, _name(tree))


def _name(tree: ast.Module) -> str:
    """What the text calls its module: its class, or what it makes of its functions."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name):
                return name
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call) if (
                ast.unparse(call.func) == "script.module"
            ):
                return name
            case _:
                pass
    return ""
