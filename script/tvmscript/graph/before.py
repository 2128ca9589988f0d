"""What stands before a statement: names for values that its spelling here uses several times.

TVM's ``gv = R.layout_transform(R.add(x, y), ...)`` asks for the shape of a value that has no name;
it gets one, in a statement of its own in front of this one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..syntax import at_place


class Naming:
    """Names values in front of the statement that is rewritten."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self._made: list[tuple[ast.stmt, bool]] = []

    def __call__(self, value: ast.expr, base: str = "value", ours: bool = False) -> ast.Name:
        """A name for a value: its own, or a new one.

        Args:
            value: The value.
            base: What a new name is made of.
            ours: Whether the value is in our spelling already.
        """
        if isinstance(value, ast.Name):
            return value
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        target = ast.Name(name, ast.Store())
        self._made.append((at_place(ast.Assign([target], value), value), ours))
        return at_place(ast.Name(name, ast.Load()), value)

    def check(self, name: ast.Name, axis: int, extent: int, like: ast.expr) -> None:
        """An axis of a named value must have so many elements."""
        shape = ast.Attribute(ast.Name(name.id, ast.Load()), "shape", ast.Load())
        size = ast.Subscript(shape, ast.Constant(axis), ast.Load())
        self.require(size, extent, f"axis {axis} of {name.id!r} must have {extent} elements", like)

    def require(self, number: ast.expr, wanted: int, text: str, like: ast.expr) -> None:
        """What is known of a value must be a number.

        Args:
            number: An expression that is known when the program is read.
            wanted: The number.
            text: What is said where it is another.
            like: Where it is said.
        """
        test = ast.Compare(number, [ast.Eq()], [ast.Constant(wanted)])
        self._made.append((at_place(ast.Assert(test, ast.Constant(text)), like), True))

    def take(self) -> list[tuple[ast.stmt, bool]]:
        """What was made since this was asked last, each with whether it is in our spelling."""
        made, self._made = self._made, []
        return made

    def note(self, root: ast.AST) -> None:
        """Names that are taken: all that a function mentions."""
        self.taken.update(mentioned(root))


def mentioned(root: ast.AST) -> Iterable[str]:
    """The names in a tree, those that it gives a meaning and those that it uses."""
    for node in ast.walk(root):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case _:
                pass
