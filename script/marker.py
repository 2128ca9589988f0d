"""Names of the language that mean something to the parser only: ``T.grid``, ``R.nn.relu`` ..."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from unity.arguments import REQUIRED, Parameter, Signature, public
from unity.errors import UnityError

F = TypeVar("F", bound=Callable[..., object])
_LETTERS = {"prim_names": "T", "graph_names": "R"}


@dataclass(frozen=True, slots=True, repr=False)
class Marker:
    """A dotted name of the language, ``T.axis.remap``; its attributes are longer names."""

    path: str
    signature: Signature | None = field(default=None, compare=False)
    """What calls of it take, where that is known."""
    text: str = field(default="", compare=False)
    """What it means, for `help`."""

    def _told(self) -> str | None:
        usage = "" if self.signature is None else f"{self.signature.usage}\n\n"
        return f"{usage}{self.text}" or None

    __doc__ = cast("str", property(_told))
    """What `help` shows: how it is called, and what that means."""

    @property
    def __signature__(self) -> inspect.Signature | None:
        """What editors show while a call is typed."""
        return None if self.signature is None else _as_python(self.signature)

    def __repr__(self) -> str:
        """As a program writes it."""
        return self.path

    def __getattr__(self, name: str) -> Marker:
        """The marker of a longer name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return Marker(f"{self.path}.{name}")

    @public
    def __call__(self, *_args: object, **_attrs: object) -> object:
        """Refuse: the parser reads these calls, Python never runs them.

        Raises:
            UnityError: Always.
        """
        raise self._misplaced()

    @public
    def __getitem__(self, _items: object) -> object:
        """Refuse, as a call is refused.

        Raises:
            UnityError: Always.
        """
        raise self._misplaced()

    def _misplaced(self) -> UnityError:
        kind = "prim_func" if self.path.startswith("T.") else "function"
        return UnityError(
            f"{self.path} is read by the parser and can't be run by Python",
            hint=f"write it inside a function decorated with @script.{kind}",
        )


def renamed(known: F, path: str, text: str) -> F:
    """Another name of the language that takes what a known one takes.

    Args:
        known: The name it is like.
        path: How it is written, ``T.block_alloc``.
        text: What it means.
    """
    signature = cast("Marker", known).signature
    own = None if signature is None else replace(signature, name=path)
    return cast("F", Marker(path, own, text))


def word(function: F) -> F:
    """A name of the language, by the function that editors and type checkers see.

    The function never runs: the parser binds calls of the name to its signature.
    """
    letter = _LETTERS[function.__module__.rpartition(".")[2]]
    path = f"{letter}.{function.__qualname__}"
    text = inspect.getdoc(function) or ""
    return cast("F", Marker(path, Signature.of(function, path), text))


def _as_python(signature: Signature) -> inspect.Signature:
    return inspect.Signature([_parameter(p) for p in signature.params])


def _parameter(p: Parameter) -> inspect.Parameter:
    if p.rest:
        return inspect.Parameter(p.name, inspect.Parameter.VAR_POSITIONAL)
    kind = inspect.Parameter
    default = kind.empty if p.default is REQUIRED else p.default
    if p.named_only:
        return kind(p.name, kind.KEYWORD_ONLY, default=default)
    return kind(p.name, kind.POSITIONAL_OR_KEYWORD, default=default)
