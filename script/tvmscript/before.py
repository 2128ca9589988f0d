"""What stands before a statement: names for values that its spelling here uses several times.

TVM's ``gv = R.layout_transform(R.add(x, y), ...)`` asks for the shape of a value that has no name; it
gets one, in a statement of its own in front of this one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .syntax import at_place


class Naming:
    """Names values in front of the statement that is rewritten."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self._made: list[ast.stmt] = []

    def __call__(self, value: ast.expr, base: str = "value") -> ast.Name:
        """A name for a value: its own, or a new one."""
        if isinstance(value, ast.Name):
            return value
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        target = ast.Name(name, ast.Store())
        self._made.append(at_place(ast.Assign([target], value), value))
        return at_place(ast.Name(name, ast.Load()), value)

    def check(self, name: ast.Name, axis: int, extent: int, like: ast.expr) -> None:
        """An axis of a named value must have so many elements."""
        shape = ast.Attribute(ast.Name(name.id, ast.Load()), "shape", ast.Load())
        size = ast.Subscript(shape, ast.Constant(axis), ast.Load())
        test = ast.Compare(size, [ast.Eq()], [ast.Constant(extent)])
        text = ast.Constant(f"axis {axis} of {name.id!r} must have {extent} elements")
        self._made.append(at_place(ast.Assert(test, text), like))

    def add(self, node: ast.stmt) -> None:
        """Another statement, already in our spelling."""
        self._made.append(node)

    def take(self) -> list[ast.stmt]:
        """What was made since this was asked last."""
        made, self._made = self._made, []
        return made

    def note(self, root: ast.AST) -> None:
        """Names that are taken: all that a function mentions."""
        self.taken.update(_names(root))


def _names(root: ast.AST) -> Iterable[str]:
    for node in ast.walk(root):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case _:
                pass
