"""Names of operators that tell what they take: ``help(R.matmul)``, ``dir(R.nn)``."""

from __future__ import annotations

from typing import cast

from unity.op.meanings import docstring_of
from unity.op.table import OPS

from .marker import Marker

_LETTER = "R."


class OperatorName(Marker):
    """``R.nn.relu``, or a family of operators, ``R.nn``."""

    __slots__ = ()
    __doc__ = cast("str", Marker.__doc__)  # a property: each name has its own text

    def __getattr__(self, name: str) -> Marker:
        """The longer name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return operator_name(f"{self.path}.{name}")

    def __dir__(self) -> list[str]:
        """The operators of the family."""
        return names_below(f"{self.path}.".removeprefix(_LETTER))


def operator_name(path: str) -> Marker:
    """The marker of a name of ``R``.

    Args:
        path: ``R.nn.relu``.

    >>> from inspect import signature
    >>> signature(operator_name("R.nn.softmax"))
    <Signature (x, axis=-1)>
    """
    name = path.removeprefix(_LETTER)
    row = OPS.get(name)
    if row is not None:
        return OperatorName(path, row.signature, docstring_of(row))
    below = names_below(f"{name}.")
    return OperatorName(path, None, f"Operators: {', '.join(below)}." if below else "")


def names_below(prefix: str) -> list[str]:
    """The first parts of operators' names behind a prefix, sorted."""
    return sorted({n.removeprefix(prefix).partition(".")[0] for n in OPS if n.startswith(prefix)})
