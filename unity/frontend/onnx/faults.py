"""Whose mistake it is when something else than a `UnityError` comes up in an import.

Files come from anywhere, and neither numpy nor the package onnx foresees all that may be wrong with
one. What they refuse is the model's mistake; what else comes up is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import InternalError, UnityError
from unity.frontend.sizes import Sizes
from unity.ir.graph import Expr

from .sequences.held import Held

OF_THE_MACHINE = (OSError, MemoryError)
"""Nobody's mistake; they go through as they are."""
_OF_NUMBERS = (ValueError, IndexError, OverflowError)
_READERS = frozenset({"onnx", "google"})
_CHECK = "onnx.checker.check_model(model, full_check=True) may say more"


_NAMED_ALIKE = (
    'dims that are always equal must have one name: unity.compile(path, dynamic={"x": {0: "n"}, '
    '"y": {1: "n"}}); where the file holds the numbers of one size, the others need theirs: '
    'dynamic={"x": {1: 50}}'
)


def remedy(hint: str | None) -> str | None:
    """The hint of an operator for who has a model, and no program to write a `match_cast` into."""
    return _NAMED_ALIKE if hint is not None and "match_cast" in hint else hint


def fault(error: Exception, where: str) -> UnityError:
    """What to raise instead.

    Args:
        error: What came up.
        where: The model, with the node that was converted if there was one.
    """
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, RecursionError):
        return UnityError(f"{where}: it is nested too deep", hint="the file may be damaged")
    if type(error).__module__.partition(".")[0] in _READERS:
        return UnityError(f"{where}: its form is wrong: {said}", hint=_CHECK)
    if isinstance(error, _OF_NUMBERS):
        return UnityError(f"{where}: its inputs don't fit: {error}", hint=_CHECK)
    return InternalError(
        f"a bug of Unity, which should have told what is wrong: {where}: {said}",
        hint=f"please report it, with the model; {_CHECK}",
    )


def of_converter(error: Exception, where: str) -> UnityError:
    """What to raise instead where a program's own converter (`register_converter`) broke.

    Args:
        error: What came up.
        where: The model, with the node that was converted.
    """
    return UnityError(
        f"{where}: the converter registered for it raised {type(error).__name__}: {error}",
        hint="mend it, where the error above says; what it does not implement it raises as "
        "node.gap(...)",
    )


def check_given(found: object, op: str) -> None:
    """What a program's own converter gave: a value, or a list of those of all outputs.

    Args:
        found: What it gave.
        op: What it is registered for, ``com.acme::Swish``.

    Raises:
        UnityError: It is something else.
    """
    items: Sequence[object] = found if isinstance(found, list | tuple) else (found,)
    if items and all(isinstance(v, Expr | Sizes | Held) for v in items):
        return
    raise UnityError(
        f"the converter registered for {op!r} must give the value of its output, or a list of "
        f"those of all outputs; it gave {found!r}",
        hint="return what node.op(...) or node.tensor(...) gives; an array is a value as "
        "unity.ir.graph.Constant(array)",
    )
