"""`ADT`: a value of a declared type, or a tuple, as scripts give it to the virtual machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.examples import counts_of
from unity.runtime.host_forms.trees import parsed

from ..nd import array


@dataclass(frozen=True)
class ADT:
    """What a constructor makes.

    Attributes:
        tag: The place of the constructor in its type's declaration, from 0: ``Cons`` of a list has
            0 and ``Nil`` 1. (TVM's own tags hold a hash of the type's name beside it.)
        fields: What it holds: arrays and further ones.
    """

    tag: int
    fields: Sequence[Any] = ()

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)


def tuple_object(fields: Sequence[object]) -> tuple[object, ...]:
    """A tuple, as the virtual machine takes it."""
    return tuple(fields)


def given(value: object) -> object:
    """A result without a form: arrays, tuples as lists."""
    return [given(v) for v in value] if isinstance(value, tuple) else array(np.asarray(value))


def with_form(value: object, form: Sequence[str]) -> object:
    """A result as scripts know it: `ADT` of declared types, lists of tuples.

    Args:
        value: What a program gave: a tensor, or tuples of them.
        form: Its parts, by `unity.frontend.relay.examples.form_of`.
    """
    found, rest = _formed(value, list(reversed(form)))
    if rest:
        raise UnityError("the form is not the result's")
    return found


@dataclass(slots=True)
class _Open:
    """A part that is being put together: its fields come one by one."""

    node: str
    values: list[object]
    made: list[object]


def _formed(value: object, form: list[str]) -> tuple[object, list[str]]:
    stack: list[_Open] = []
    wanted = value
    while True:
        node = form.pop()
        if node:
            assert isinstance(wanted, tuple)
            stack.append(_Open(node, list(reversed(wanted)), []))
            if " " in node:  # the tag, which the form has or which stands first
                tag = stack[-1].values.pop()
                stack[-1].made += [tag] if node.startswith("?") else []
        else:
            done = given(wanted)
            if not stack:
                return done, form
            stack[-1].made.append(done)
        while not stack[-1].values:
            done = _closed(stack.pop())
            if not stack:
                return done, form
            stack[-1].made.append(done)
        wanted = stack[-1].values.pop()


def _closed(part: _Open) -> object:
    if part.node.startswith("?"):
        tag, *fields = part.made
        chosen = int(np.asarray(tag))
        start = 0
        for known, count in counts_of(part.node):
            if known == chosen:
                return ADT(chosen, tuple(fields[start : start + count]))
            start += count
        raise UnityError(f"a result has the tag {chosen}, which no constructor has")
    node = parsed(part.node)
    return ADT(node.tag, tuple(part.made)) if node.name else part.made
