"""Values of declared types (lists, trees) as a caller gives them, and the tensors in them.

A program that is compiled for one form of such a value takes the tensors alone, as a tuple. A
caller gives the value; one of another form is refused, as it would mean another program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.runtime.records import Index

TENSOR = ""
"""The node of a tensor."""
_HINT = (
    "the program is for the one form that it was compiled for: compile it for this one "
    "(examples=), or call it by unity.relay.vm, which does"
)


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a value that is no tensor.

    Attributes:
        name: Its constructor; empty for a tuple.
        tag: The place of the constructor in its type's declaration.
        count: How many fields it has.
    """

    name: str
    tag: int
    count: int

    @property
    def text(self) -> str:
        """It as `Tree.nodes` has it."""
        return f"{self.name} {self.tag} {self.count}" if self.name else str(self.count)

    def __str__(self) -> str:
        """It as messages have it."""
        return f"{self.name} of {self.count}" if self.name else f"a tuple of {self.count}"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a value says of itself: its constructor's name or tag (None for a tuple), its fields."""

    constructor: str | int | None
    fields: Sequence[object]

    def __str__(self) -> str:
        """It as messages have it."""
        match self.constructor:
            case None:
                return f"a tuple of {len(self.fields)}"
            case str():
                return f"{self.constructor} of {len(self.fields)}"
            case int():
                return f"the constructor {self.constructor} of {len(self.fields)} fields"


@dataclass(frozen=True, slots=True)
class Rest:
    """A Python list from some place on: a list of the prelude's."""

    items: list[object]
    start: int = 0

    @property
    def opened(self) -> tuple[object, ...]:
        """The fields of a list: its head and its tail, or none."""
        if self.start == len(self.items):
            return ()
        return (self.items[self.start], Rest(self.items, self.start + 1))


@dataclass(frozen=True, slots=True)
class Tree:
    """The form of an input that is of a declared type, or a tuple with such in it.

    Attributes:
        index: Which input.
        nodes: Its parts, each before what it holds: ``""`` a tensor, ``"2"`` a tuple of two,
            ``"Cons 0 2"`` what the constructor of the tag 0 makes of two fields.
    """

    index: Index
    nodes: tuple[str, ...]

    def tensors(self, value: object, where: str) -> tuple[object, ...]:
        """The tensors in a value of this form.

        Args:
            value: ``("Cons", x, rest)`` by the constructor's name or its tag, an object with
                ``tag`` and ``fields``, a Python list for a list of the prelude's; a tuple for a
                tuple. Or a tuple of all the tensors, in order.
            where: What messages call it.

        Raises:
            UnityError: It is of another form.
        """
        leaves = sum(not node for node in self.nodes)
        if isinstance(value, tuple) and len(value) == leaves and all(map(_is_array, value)):
            return value
        found: list[object] = []
        stack = [(value, where)]
        for text in self.nodes:
            part, place = stack.pop()
            if not text:
                found.append(part)
                continue
            fields = _fields(part, parsed(text), place)
            named = [(f, f"{place}[{i}]") for i, f in enumerate(fields)]
            stack += reversed(named)
        return tuple(found)

    @property
    def is_whole(self) -> bool:
        """Whether the nodes are all of one value's, and no more."""
        wanted = 1
        for text in self.nodes:
            words = text.split()
            numbers = words[1:] if len(words) == 3 else words
            if not wanted or len(words) == 2 or not all(w.isdecimal() for w in numbers):
                return False
            wanted += (parsed(text).count if text else 0) - 1
        return wanted == 0


def parsed(text: str) -> Node:
    """A node of its text."""
    *constructor, count = text.split()
    if not constructor:
        return Node("", 0, int(count))
    name, tag = constructor
    return Node(name, int(tag), int(count))


def opened(value: object) -> Opened | Rest | None:
    """What a value of a declared type says of itself; None for what is none."""
    match value:
        case Rest():
            return value
        case list():
            return Rest(value)
        case str():
            return Opened(value, ())
        case tuple((str() as name, *fields)):
            return Opened(name, fields)
        case tuple((first, *fields)) if _is_tag(first):
            return Opened(int(np.asarray(first)), fields)
        case tuple():
            return Opened(None, value)
        case _:
            tag, held = getattr(value, "tag", None), getattr(value, "fields", None)
            if _is_tag(tag) and isinstance(held, Sequence):
                return Opened(int(np.asarray(tag)), held)
            return None


def _fields(value: object, node: Node, where: str) -> Sequence[object]:
    found = opened(value)
    fields: Sequence[object] = ()
    fits, got = False, type(value).__name__
    match found:
        case None:
            pass
        case Rest(items, start):
            fields = found.opened if node.name else items[start:]
            fits, got = len(fields) == node.count, f"a list of {len(items) - start}"
        case Opened(constructor, held):
            named = bool(node.name) and constructor in (node.name, node.tag)
            fields = held if node.name or not isinstance(value, tuple) else tuple(value)
            plain = not node.name and isinstance(value, tuple)
            fits = (named or plain) and len(fields) == node.count
            got = str(found)
    if not fits:
        raise UnityError(f"{where} must be {node}, got {got}", hint=_HINT)
    return fields


def _is_tag(value: object) -> bool:
    """Whether a value is a whole number and no more: a tag."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int | np.integer):
        return True
    return isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu"


def _is_array(value: object) -> bool:
    return hasattr(value, "shape")
