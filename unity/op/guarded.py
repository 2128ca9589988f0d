"""Rows of other packages: each of what it should be, and what one raises is said to be its own.

Comes in: a row that a program registers. Goes out: the same row, whose rules name themselves and
their operator when they break, whoever calls them: a type rule is called while a program is
written, a compute while it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from unity.annotated import kind_of
from unity.errors import UnityError
from unity.ir.graph import Expr
from unity.ir.types import Type
from unity.te import Tensor

from . import registry
from .registry import OpDef, Sample

_P = ParamSpec("_P")
_T = TypeVar("_T")
_TAKEN = {
    "infer": ("a call",),
    "reference": ("arguments", "attributes"),
    "compute": ("arguments", "attributes", "the result's type"),
    "expand": ("an emitter", "arguments", "attributes", "the result's type"),
    "in_place": ("buffers", "attributes"),
    "samples": ("a seed",),
    "multiply_adds": ("the operands' extents", "the result's"),
}
"""What each rule is called with, in order."""


def check_kinds(op: OpDef) -> None:
    """Each row is what its annotation says, and each rule takes what it is called with.

    Raises:
        UnityError: One is not, or does not; the message names the operator and the row.
    """
    for field in fields(op):
        value = getattr(op, field.name)
        kind = kind_of(field.type, vars(registry))
        if not kind.fits(value):
            raise UnityError(
                f"the operator {op.name!r}: {field.name!r} must be {kind.words}, got {value!r}"
            )
    for row, given in _TAKEN.items():
        rule = getattr(op, row)
        if rule is not None and not _takes(rule, len(given)):
            raise UnityError(
                f"the operator {op.name!r}: {row!r} can't be called as it is: it is given "
                f"{', '.join(given)}, and takes {signature(rule)}"
            )


def _takes(rule: Callable[..., object], count: int) -> bool:
    """Whether a function may be called with so many arguments; yes if it doesn't say."""
    try:
        signature(rule).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # of C
        return True
    return True


def guarded(op: OpDef) -> OpDef:
    """A row whose rules say of what they raise that it is theirs, as a `UnityError`."""
    return replace(
        op,
        infer=_guard(op.name, "infer", op.infer, "a type", _is_type),
        reference=op.reference and _guard(op.name, "reference", op.reference),
        compute=op.compute
        and _guard(op.name, "compute", op.compute, "a tensor or a tuple of them", _is_tensors),
        expand=op.expand and _guard(op.name, "expand", op.expand, "an expression", _is_expr),
        in_place=op.in_place and _guard(op.name, "in_place", op.in_place),
        multiply_adds=op.multiply_adds and _guard(op.name, "multiply_adds", op.multiply_adds),
        samples=op.samples and _guard(op.name, "samples", op.samples),
    )


def _guard(
    name: str,
    row: str,
    rule: Callable[_P, _T],
    wanted: str = "anything",
    fits: Callable[[object], bool] = lambda _: True,
) -> Callable[_P, _T]:
    @wraps(rule)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            found = rule(*args, **kwargs)
        except (UnityError, OSError, MemoryError):
            raise
        except Exception as error:
            raise UnityError(
                f"the operator {name!r}: its {row!r} raised {type(error).__name__}: {error}",
                hint="mend it, where the error above says; what a type rule refuses it raises as "
                "call.error(...)",
            ) from error
        if not fits(found):
            raise UnityError(
                f"the operator {name!r}: its {row!r} must give {wanted}, got {found!r}"
            )
        return found

    return checked


def _is_type(value: object) -> bool:
    return isinstance(value, Type)


def _is_expr(value: object) -> bool:
    return isinstance(value, Expr)


def _is_tensors(value: object) -> bool:
    items = value if isinstance(value, tuple) else (value,)
    return bool(items) and all(isinstance(v, Tensor) for v in items)


def samples_of(op: OpDef) -> tuple[Sample, ...]:
    """The samples of seed 0.

    Raises:
        UnityError: There are none, or something else is given for them.
    """
    given: object = None if op.samples is None else op.samples(0)
    if isinstance(given, list | tuple) and all(isinstance(s, Sample) for s in given):
        if given:
            return tuple(given)
        raise UnityError(f"the operator {op.name!r} has no samples")
    raise UnityError(
        f"the operator {op.name!r}: its 'samples' must give a list of Sample, got {given!r}",
        hint="unity.op.sampling.sample(params, arrays, attribute=...) makes one",
    )
