"""Names of operators that tell what they take: ``help(R.matmul)``, ``dir(R.nn)``.

Each is a `Marker` of a class of its own, whose signature and text are the operator's.
"""

from __future__ import annotations

import inspect
from functools import cache

from unity.arguments import REQUIRED
from unity.op.registry import OpDef
from unity.op.table import OPS

from .marker import Marker

_LETTER = "R."


class OperatorName(Marker):
    """``R.nn.relu``, or a family of operators, ``R.nn``."""

    __slots__ = ()

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
    row = OPS.get(path.removeprefix(_LETTER))
    return OperatorName(path) if row is None else _class_of(row)(path)


@cache
def names_below(prefix: str) -> list[str]:
    """The first parts of operators' names behind a prefix, sorted."""
    return sorted({n.removeprefix(prefix).partition(".")[0] for n in OPS if n.startswith(prefix)})


@cache
def _class_of(row: OpDef) -> type[OperatorName]:
    """The class of an operator's name."""
    return type(
        row.name.rpartition(".")[2],
        (OperatorName,),
        {
            "__slots__": (),
            "__doc__": row.doc,
            "__module__": "unity.script.R",
            "__signature__": _signature(row),
        },
    )


def _signature(row: OpDef) -> inspect.Signature:
    params = [
        inspect.Parameter(
            p.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if p.default is REQUIRED else p.default,
        )
        for p in row.params
    ]
    return inspect.Signature(params)
