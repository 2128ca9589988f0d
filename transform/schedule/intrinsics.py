"""The table of tensor intrinsics, to which users add theirs."""

from __future__ import annotations

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.signature import size_params
from unity.machine.changed import INTRINSICS as CHANGED_INTRINSICS
from unity.machine.changed import changed

from .dots import DOTS, TILE_STEPS, short_tile_step
from .tensor_intrinsic import TensorIntrinsic

INTRINSICS: dict[str, TensorIntrinsic] = {**DOTS, **TILE_STEPS}
"""Those that `tensorize` knows, by name, beside those of tiles of few rows."""


def intrinsic_named(name: str) -> TensorIntrinsic | None:
    """An intrinsic; None where there is none of the name."""
    return INTRINSICS.get(name) or short_tile_step(name)


@public
def register_intrinsic(name: str, intrinsic: TensorIntrinsic) -> None:
    """Make an intrinsic known.

    Raises:
        UnityError: The name is taken, the two prim funcs take different buffers, or the
            implementation has a symbol that is no buffer's stride.
    """
    if (intrinsic_named(name) or intrinsic) != intrinsic:
        raise UnityError(f"there is another tensor intrinsic {name!r}")
    described, made = intrinsic.description.buffers, intrinsic.implementation.buffers
    shapes = [[(b.shape, b.dtype) for b in buffers] for buffers in (described, made)]
    if shapes[0] != shapes[1]:
        raise UnityError(f"the prim funcs of the intrinsic {name!r} take different buffers")
    strides = [s for b in intrinsic.implementation.buffers for s in b.strides or ()]
    unbound = [s.name for s in size_params(intrinsic.implementation) if s not in strides]
    if unbound:
        raise UnityError(
            f"no buffer of the intrinsic {name!r} has the stride {unbound[0]!r}",
            hint="the shapes are constants, and strides are constants or symbols by themselves",
        )
    changed(CHANGED_INTRINSICS)  # by which records may lay kernels out
    INTRINSICS[name] = intrinsic
