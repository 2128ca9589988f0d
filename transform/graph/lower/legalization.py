"""Legalizations: kernels that a backend or a user has for an op, before the op's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.lattice import unify
from unity.ir.signature import buffer_type
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType, Type
from unity.ir.well_formed.verify_prim import verify_prim_func
from unity.op.registry import ComputeArg, OpDef
from unity.op.table import OPS
from unity.te import Tensor

from ..symbols import tensor_fields

LegalizeRule: TypeAlias = Callable[
    [Sequence[ComputeArg], Attrs, Type], "Tensor | tuple[Tensor, ...] | PrimFunc | None"
]
"""(tensor arguments, attributes, result type) -> the result as tensor expressions, or a kernel
written out; None where the op's own is to be taken. As an op's compute row, which it replaces."""


@dataclass(frozen=True, slots=True)
class Legalization:
    """How an op becomes a kernel: ``Legalization("nn.gelu", fast_gelu)``.

    Attributes:
        op: Its name.
        rule: Gives the kernel.

    Raises:
        UnityError: There is no such op, or it is none that becomes a kernel.
    """

    op: str
    rule: LegalizeRule

    def __post_init__(self) -> None:
        op = OPS.get(self.op)
        if op is None or op.compute is None:
            what = "there is no such op" if op is None else "it never becomes a kernel"
            raise UnityError(f"a legalization of {self.op!r}: {what}")


def legalized(
    rules: Sequence[Legalization],
    op: OpDef,
    args: Sequence[ComputeArg],
    attrs: Attrs,
    result: Type,
) -> tuple[Tensor, ...] | PrimFunc | None:
    """What the first rule that applies makes of a call; None if none does.

    Raises:
        UnityError: A rule gives a kernel of other tensors than the call's.
    """
    for each in rules:
        if each.op != op.name:
            continue
        try:
            made = each.rule(args, attrs, result)
        except UnityError as error:
            where = f"the legalization of {op.name} fails"
            raise UnityError(f"{where}: {error.message}", error.span, error.hint) from error
        if made is None:
            continue
        inputs = [t for a in args for t in (a if isinstance(a, tuple) else (a,))]
        outputs = tensor_fields(result)
        assert outputs is not None
        given = [*map(buffer_type, inputs), *outputs]
        if isinstance(made, PrimFunc):
            _check(op, [buffer_type(b) for b in made.buffers], given)
            marks = Attrs(pattern="opaque", op=op.name, private=True, num_outputs=len(outputs))
            made = replace(made, attrs=marks.with_(**made.attrs))
            verify_prim_func(op.name, made)
            if len(made.params) != len(made.buffers):
                raise UnityError(f"the legalization of {op.name} gives a kernel with scalars")
            return made
        flat = made if isinstance(made, tuple) else (made,)
        if not all(isinstance(t, Tensor) for t in flat):
            raise UnityError(
                f"the legalization of {op.name} gives {type(made).__name__}",
                hint="a tensor, a tuple of them, a PrimFunc, or None",
            )
        _check(op, [*map(buffer_type, inputs), *map(buffer_type, flat)], given)
        return flat
    return None


def _check(op: OpDef, formal: Sequence[TensorType], given: Sequence[TensorType]) -> None:
    """Refuse a kernel that can't be called with a site's tensors."""
    try:
        unify(formal, given)
    except UnityError as error:
        raise UnityError(
            f"the legalization of {op.name} does not fit the call: {error.message}",
            hint=f"inputs and outputs are {', '.join(map(str, given))}",
        ) from error
