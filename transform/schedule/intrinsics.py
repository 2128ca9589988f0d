"""Tensor intrinsics: what a unit of hardware computes, and the statements that make it do so."""

from __future__ import annotations

from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.stmt import PrimFunc


@dataclass(frozen=True, slots=True)
class TensorIntrinsic:
    """Two prim funcs over the same buffers.

    Attributes:
        description: Loops around one block without an init: what is computed.
        implementation: How.
    """

    description: PrimFunc
    implementation: PrimFunc


INTRINSICS: dict[str, TensorIntrinsic] = {}
"""Those that `tensorize` knows, by name."""


def register_intrinsic(name: str, intrinsic: TensorIntrinsic) -> None:
    """Make an intrinsic known.

    Raises:
        UnityError: The name is taken, or the two prim funcs take different buffers.
    """
    if INTRINSICS.get(name, intrinsic) != intrinsic:
        raise UnityError(f"there is another tensor intrinsic {name!r}")
    described, made = intrinsic.description.buffers, intrinsic.implementation.buffers
    shapes = [[(b.shape, b.dtype) for b in buffers] for buffers in (described, made)]
    if shapes[0] != shapes[1]:
        raise UnityError(f"the prim funcs of the intrinsic {name!r} take different buffers")
    INTRINSICS[name] = intrinsic
