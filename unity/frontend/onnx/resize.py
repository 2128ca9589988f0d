"""Resize and its forerunner Upsample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.errors import UnityError
from unity.frontend.resize_positions import CROPPED, Method
from unity.frontend.resizing import Wanted, resized
from unity.frontend.run_time.vectors import bound, ints_of, vector_of
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr

from .node import Converter, Node, Value


def _resize(node: Node) -> Value:
    policy = node.text_of("keep_aspect_ratio_policy", "stretch")
    early = node.version < 11
    method = Method(
        node.text_of("mode", "nearest"),
        node.text_of("coordinate_transformation_mode", "asymmetric" if early else "half_pixel"),
        node.text_of("nearest_mode", "floor" if early else "round_prefer_floor"),
        node.float_of("cubic_coeff_a", -0.75),
        bool(node.int_of("exclude_outside", 0)),
        bool(node.int_of("antialias", 0)),
        node.float_of("extrapolation_value", 0.0),
    )
    rank = node.rank(0)
    axes = node.ints_of("axes")
    over = tuple(range(rank)) if axes is None else tuple(node.axis(a, rank) for a in axes)
    region = None
    if method.coordinates == CROPPED and node.has(1):
        region = node.cast(node.tensor(1), FLOAT32)
        if node.shape_of(region) != (2 * len(over),):
            raise UnityError(f"the region of {len(over)} axes takes {2 * len(over)} numbers")
    sizes = node.dims(3, "the sizes") if node.has(3) else ()
    if sizes and policy != "stretch":
        return _in_proportion(node, method, over, sizes, policy)
    if sizes:
        return resized(node, node.tensor(0), method, over, Wanted(sizes, region=region))
    wanted = _scales(node, 1 if early else 2)
    return resized(node, node.tensor(0), method, over, wanted)


def _in_proportion(
    node: Node, method: Method, over: Sequence[int], sizes: Sequence[Dim], policy: str
) -> Value:
    """All axes by one scale: the largest that exceeds no size, or the smallest that reaches all."""
    rules = {"not_larger": "min", "not_smaller": "max"}
    if policy not in rules:
        raise UnityError(f"keep_aspect_ratio_policy {policy!r} is not known")
    x = node.tensor(0)
    if len(sizes) != len(over):
        raise UnityError(f"{len(over)} axes take as many sizes, got {len(sizes)}")
    extents = node.cast(vector_of(node, [node.shape_of(x)[a] for a in over]).value, FLOAT32)
    wanted = node.cast(vector_of(node, sizes).value, FLOAT32)
    scale = node.op(rules[policy], node.op("divide", wanted, extents), axis=(0,), keepdims=True)
    rounded = node.op("floor", node.op("add", node.op("multiply", extents, scale), _half()))
    found = bound(node, ints_of(node, rounded), "size", least=1)
    scales = node.op("broadcast_to", scale, (len(over),))
    return resized(node, x, method, over, Wanted(found, late=scales))


def _half() -> Constant:
    return Constant(np.asarray(0.5, np.float32))


def _upsample(node: Node) -> Value:
    mode = node.text_of("mode", "nearest")
    method = Method(mode, "asymmetric", "floor", -0.75, False)
    given = node.attribute("scales")
    known = None if given is None else Wanted(scales=tuple(float(s) for s in given.floats))
    wanted = _scales(node, 1) if known is None else known
    return resized(node, node.tensor(0), method, tuple(range(node.rank(0))), wanted)


def _scales(node: Node, index: int) -> Wanted:
    if not node.has(index):
        raise UnityError("has neither scales nor sizes")
    array = node.constant(index)
    if array is None:
        late: Expr = node.cast(node.tensor(index), FLOAT32)
        return Wanted(late=late)
    return Wanted(scales=tuple(float(s) for s in array.astype(np.float64).reshape(-1)))


CONVERTERS: dict[str, Converter] = {"Resize": _resize, "Upsample": _upsample}
