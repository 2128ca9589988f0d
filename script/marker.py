"""Names of the language that mean something to the parser only: ``T.grid``, ``R.nn.relu`` ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from unity.arguments import Signature
from unity.errors import UnityError

F = TypeVar("F", bound=Callable[..., object])
_LETTERS = {"prim_names": "T", "graph_names": "R"}


@dataclass(frozen=True, slots=True)
class Marker:
    """A dotted name of the language, ``T.axis.remap``; its attributes are longer names."""

    path: str
    signature: Signature | None = field(default=None, compare=False, repr=False)
    """What calls of it take, where it is written down (`word`)."""

    def __getattr__(self, name: str) -> Marker:
        """The marker of a longer name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return Marker(f"{self.path}.{name}")

    def __call__(self, *_args: object, **_attrs: object) -> object:
        """Refuse: the parser reads these calls, Python never runs them.

        Raises:
            UnityError: Always.
        """
        raise self._misplaced()

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


def renamed(known: F, path: str) -> F:
    """Another name of the language that takes what a known one takes."""
    signature = cast("Marker", known).signature
    return cast("F", Marker(path, None if signature is None else replace(signature, name=path)))


def word(function: F) -> F:
    """A name of the language, by the function that editors and type checkers see.

    The function never runs: the parser binds calls of the name to its signature.
    """
    letter = _LETTERS[function.__module__.rpartition(".")[2]]
    path = f"{letter}.{function.__qualname__}"
    return cast("F", Marker(path, Signature.of(function, path)))
