"""Forms: the ways our own kernels may compute a site, ``tir:direct``, ``tir:winograd.4``, ...

What is chosen is written at the call as its attribute `algorithm`; the passes that lay out weights
and images (`ConvertLayout`, `ConvertWinograd`, `PackWeights`) do as it says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod
from weakref import ReferenceType, ref

from unity.ir.dtype import FLOAT32, Array, dtype
from unity.ir.graph import Call, Constant, Op, Var
from unity.ir.types import TensorType, Type
from unity.machine.target import Target
from unity.op.algorithm import CONVOLUTIONS, PRODUCTS
from unity.op.convolution.conv_winograd import sampled_error
from unity.op.window import paddings, per_axis

from ..layout import blockable
from ..layout.blockable import image_of, is_blockable
from ..layout.pack_weights import PACKED, worth_packing
from ..layout.winograd_estimate import MARGIN, TILES, taps_of, winograd_cycles, worth

FORMS = (*CONVOLUTIONS, *PRODUCTS)
_UNPACKED = 1.3
"""How much longer a product may take whose matrix lies as it was given."""
_TOLERANCE = 1e-4
_errors: dict[tuple[int, int], tuple[ReferenceType[Array], float]] = {}


@dataclass(frozen=True, slots=True)
class Form:
    """A way of our own.

    Attributes:
        algorithm: Its name.
        share: What it takes, relative to our estimate of the op.
        why_not: Why it can't be taken; None if it can.
    """

    algorithm: str
    share: float = 1.0
    why_not: str | None = None


def forms_of(
    call: Call, var: Var, alone: Collection[Var], target: Target, errors: bool = True
) -> list[Form]:
    """The forms of a call, the one that our own passes prefer first; empty where there is one way.

    Args:
        call: The call.
        var: What it computes.
        alone: Convolutions of single pixels that no other one is near.
        target: The machine.
        errors: Whether to look at rounding errors already: `ConvertWinograd` does in any case.
    """
    match call:
        case Call(Op(name), (_, Constant() as weight)) if name in blockable.CONVOLUTIONS:
            found = _convolution(call, weight, var, alone, target, errors)
        case Call(Op("matmul"), (x, Constant() as weight)):
            found = _product(call, x.type if isinstance(x, Var) else None, weight, target)
        case _:
            return []
    said = call.attrs.get("algorithm")
    return sorted(found, key=lambda f: (f.why_not is not None, f.algorithm != said))


def _convolution(
    call: Call, weight: Constant, var: Var, alone: Collection[Var], target: Target, errors: bool
) -> list[Form]:
    lanes = target.vector_bits // FLOAT32.bits
    out, image = image_of(var), image_of(call.args[0])
    if lanes < 4 or out is None or image is None or call.attrs["groups"] != 1:
        return []
    if dtype(weight.data.dtype) != FLOAT32:
        return []
    if not is_blockable(call, image, out, lanes):
        return []
    direct = Form("direct")
    gemm = Form("gemm", 0.98 if var in alone else 1.02, _no_gemm(call, weight))
    frames = prod(weight.data.shape[2:-2])
    blocks = (-(-out.channels // lanes), frames * -(-image.channels // lanes))
    taps = taps_of(weight.data.shape[2:]) or min(TILES)
    cycles = winograd_cycles(*blocks, out.batch, out.sizes, lanes, target, taps)
    why = _no_winograd(call, weight, image.channels, lanes)
    tiles: list[Form] = []
    exact = not errors  # a smaller tile than one that is exact enough is so, too
    for tile in TILES[taps]:
        reason = why
        if reason is None and cycles[tile] < MARGIN * cycles[0]:
            error = 0.0 if exact else _error(weight, tile)
            exact = error <= _TOLERANCE
            if not exact:
                reason = f"its rounding errors would be {error:.1g}"
        elif reason is None:
            reason = "it would take longer for certain"
        tiles.append(Form(f"winograd.{tile}", cycles[tile] / cycles[0], reason))
    tiles.sort(key=lambda f: f.share)
    if gemm.why_not is None and var in alone:
        return [gemm, direct, *tiles]
    best = worth(cycles)
    first = [f for f in tiles if int(f.algorithm[-1]) in best and f.why_not is None]
    return [*first, direct, *(f for f in tiles if f not in first), gemm]


def _no_winograd(call: Call, weight: Constant, channels: int, lanes: int) -> str | None:
    rank = weight.data.ndim - 2
    strides = per_axis("strides", call.attrs["strides"], rank, 1)
    dilation = per_axis("dilation", call.attrs["dilation"], rank, 1)
    if taps_of(weight.data.shape[2:]) is None or {*strides, *dilation} != {1}:
        return f"for windows of {', '.join(f'{k}x{k}' for k in TILES)} with steps of 1"
    return None if 2 * channels >= lanes else "there are too few channels to fill a block"


def _no_gemm(call: Call, weight: Constant) -> str | None:
    rank = weight.data.ndim - 2
    begin, end = paddings(call.attrs["padding"], rank)
    strides = per_axis("strides", call.attrs["strides"], rank, 1)
    if set(weight.data.shape[2:]) != {1} or set(strides) != {1} or any((*begin, *end)):
        return "for windows of a single pixel with steps of 1"
    return None


def _error(weight: Constant, tile: int) -> float:
    """The sampled error of a tile on some weights, computed once."""
    key = (id(weight.data), tile)
    known = _errors.get(key)
    if known is None or known[0]() is not weight.data:
        if len(_errors) > 256:
            _errors.clear()
        known = _errors[key] = (ref(weight.data), float(sampled_error(weight.data, tile)))
    return known[1]


def _product(call: Call, kind: Type | None, weight: Constant, target: Target) -> list[Form]:
    of = dtype(weight.data.dtype)
    if of not in PACKED or weight.data.ndim < 2 or not isinstance(kind, TensorType):
        return []
    if kind.ndim is None or 2 < weight.data.ndim > kind.ndim or call.attrs["out_dtype"] is not None:
        return []
    *_, depth, columns = weight.data.shape
    if not worth_packing(depth, columns, target.vector_bits // max(of.bits, 32)):
        return []
    return [Form("packed"), Form("unpacked", _UNPACKED)]


def known_form(name: str) -> bool:
    """Whether a form, or several, are called so: ``winograd`` is either tile."""
    return any(f == name or f.startswith(f"{name}.") for f in FORMS)
