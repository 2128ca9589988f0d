"""Names of the language that mean something to the parser only: ``T.grid``, ``R.nn.relu`` ..."""

from __future__ import annotations

from dataclasses import dataclass

from unity.errors import UnityError


@dataclass(frozen=True, slots=True)
class Marker:
    """A dotted name of the language, ``T.axis.remap``; its attributes are longer names."""

    path: str

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
