"""What a tensor intrinsic is: what a unit of hardware computes, and how it is made to."""

from __future__ import annotations

from dataclasses import dataclass

from unity.arguments import public_class
from unity.ir.stmt import PrimFunc


@public_class
@dataclass(frozen=True, slots=True)
class TensorIntrinsic:
    """Two prim funcs over the same buffers.

    Attributes:
        description: Loops around one block without an init: what is computed.
        implementation: How.
    """

    description: PrimFunc
    implementation: PrimFunc
