"""Programs made wrong, one call at a time, and whether that is refused.

A call of a name of the language gets a keyword nobody knows, an argument too many, and in place of
each argument literals of every kind. What comes of it is a refusal of ours that names the place, or
another program; never a raw Python error, never the program as if nothing had been written.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types

LITERALS: Mapping[str, str] = {
    '"bogus"': "text",
    "b'x'": "bytes",
    "1.5": "float",
    "float('inf')": "float",
    "float('nan')": "float",
    "99": "int",
    "-99": "int",
    "True": "bool",
    "None": "none",
    "()": "tuple",
    "[1]": "tuple",
    "('a',)": "tuple",
    "...": "dots",
    "{'a': 1}": "dict",
    "1j": "complex",
    "object": "class",
}
"""What is put in an argument's place, and of which kind it is."""
TOO_MANY = 30
TYPED = ("Tensor", "Buffer", "T.Scalar")
"""What stands first in the subscript of a type."""
Read = Callable[[str], IRModule]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A program with one thing changed.

    Attributes:
        path: The name that is called, ``T.serial``.
        what: The change, for a message.
        text: The program.
        param: The argument changed: its name, or its place; "" for a change that is always wrong.
        kind: Of the literal put there.
        same: Whether the literal says what stood there before.
    """

    path: str
    what: str
    text: str
    param: str | int = ""
    kind: str = ""
    same: bool = False


def mutations(text: str, only: Callable[[str], bool] = lambda path: True) -> Iterator[Mutation]:
    """Each call of a name of the language in a program, changed in every way.

    Args:
        text: The program.
        only: Which names.
    """
    tree = ast.parse(text)
    for index, (_, path) in enumerate(_calls(tree)):
        if only(path):
            yield from _of_call(tree, index, path)


def annotation_mutations(text: str) -> Iterator[Mutation]:
    """Each type that a program writes as ``f32[Tensor, n]``, its parts changed in every way."""
    tree = ast.parse(text)
    for index, node in enumerate(_types(tree)):
        parts = _parts(node)
        path = f"{ast.unparse(node.value)}[{ast.unparse(parts[0])}]"
        made, found = _changed(tree, index, [*parts, ast.Constant("extra")])
        yield Mutation(path, f"{ast.unparse(found)}", ast.unparse(made))
        for k, before in enumerate(parts):
            for literal, kind in LITERALS.items():
                new = ast.parse(literal, mode="eval").body
                made, found = _changed(tree, index, [*parts[:k], new, *parts[k + 1 :]])
                same = value_of(literal) == value_of(ast.unparse(before)) is not None
                what = f"{ast.unparse(node)} -> {ast.unparse(found)}"
                yield Mutation(path, what, ast.unparse(made), k, kind, same)


def _changed(
    tree: ast.Module, index: int, parts: list[ast.expr]
) -> tuple[ast.Module, ast.Subscript]:
    """The program with other parts of one of its types."""
    made = copy.deepcopy(tree)
    found = _types(made)[index]
    found.slice = ast.Tuple(parts, ast.Load())
    return made, found


def _parts(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _types(tree: ast.Module) -> list[ast.Subscript]:
    """The types of tensors, buffers and scalars, each once in a text."""
    found: dict[str, ast.Subscript] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(_parts(node)[0]) in TYPED:
            found.setdefault(ast.unparse(node), node)
    return list(found.values())


def _of_call(tree: ast.Module, index: int, path: str) -> Iterator[Mutation]:
    def fresh() -> tuple[ast.Module, ast.Call]:
        made = copy.deepcopy(tree)
        return made, [*_calls(made)][index][0]

    made, call = fresh()
    call.keywords.append(ast.keyword("bogus", ast.Constant(1)))
    yield Mutation(path, "bogus=1", ast.unparse(made))
    for count in (1, TOO_MANY):
        made, call = fresh()
        call.args += [ast.Constant("extra")] * count
        yield Mutation(path, f"{count} texts more", ast.unparse(made))
    _, call = fresh()
    given: list[tuple[str | int, ast.expr]] = [*enumerate(call.args)]
    given += [(k.arg, k.value) for k in call.keywords if k.arg is not None]
    for param, before in given:
        for literal, kind in LITERALS.items():
            made, call = fresh()
            put(call, param, literal)
            same = value_of(literal) == value_of(ast.unparse(before)) is not None
            same = same or ("inf" in literal and ast.unparse(before) == "'inf'")
            what = f"{param}: {ast.unparse(before)} -> {literal}"
            yield Mutation(path, what, ast.unparse(made), param, kind, same)


def put(call: ast.Call, param: str | int, literal: str) -> None:
    """Put a literal in an argument's place, or add it by name."""
    new = ast.parse(literal, mode="eval").body
    if isinstance(param, int):
        call.args[param] = new
        return
    call.keywords = [k for k in call.keywords if k.arg != param]
    call.keywords.append(ast.keyword(param, new))


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("I.", "R.", "T.")):
            yield node, ast.unparse(node.func)


def value_of(text: str) -> object:
    """A literal's value, lists as tuples; None if it is none."""
    try:
        found = ast.literal_eval(text)
    except ValueError:
        return None
    return tuple(found) if isinstance(found, list) else found


def outcome(mutation: Mutation, before: IRModule, read: Read) -> str | None:
    """What is wrong with how a mutation goes; None if it is refused, "" if it is another program.

    Args:
        mutation: The program.
        before: The program that was changed.
        read: Reads programs.
    """
    try:
        after = read(mutation.text)
        verify(after)
        check_types(after)
    except UnityError as error:
        named = error.span is not None or error.message.startswith(tuple(before))
        return None if named else f"refused without a place: {error.message}"
    except Exception as error:  # that is what is looked for
        return f"raises {type(error).__name__}: {error}"
    if first_difference(before, after) is None and not mutation.same:
        return "is read as if it was not there"
    return ""
