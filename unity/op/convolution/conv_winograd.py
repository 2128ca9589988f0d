"""Convolution over blocked channels by Winograd's minimal filtering: fewer multiplications.

An output tile of ``m x m`` pixels is made of ``(m + 2)^2`` products of transformed inputs and
weights, summed over the channels, instead of ``9 m^2``: 2.25 times fewer with tiles of 2, 4 times
fewer with tiles of 4, at the cost of rounding errors a few times larger
(`unity.op.convolution.cook_toom`). Of frames each is such an image: taps over frames are summed
over as channels are, so that a transformed frame counts for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, always_ge, ceildiv, floordiv
from unity.ir.dtype import Array, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Real, real, working_dtype
from unity.op.argument import common_dtype, ranked, require_equal, type_text
from unity.op.attribute import INT, INTS
from unity.op.reduction.reduce import known
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    TypeRule,
    attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample
from unity.op.window import Window, check_steps, dims_of, pad_reference, paddings

from .cook_toom import POINTS, as_array, cook_toom, input_rows, output_rows
from .window_sum import operands

_PARAMS = (
    Param("x"),
    Param("weight"),
    attr("tile", INT),
    attr("padding", INTS, 0),
)


def transformed_weights(weight: Array, tile: int) -> Array:
    """Weights ``(n, k, k, m)`` as ``(n, (tile + k - 1)^2, m)``, in float64: each m by itself."""
    n, k, _, m = weight.shape
    g = as_array(cook_toom(tile, tile + k - 1).weights)
    both = np.einsum("ia,jb->ijab", g, g).reshape(-1, k * k)
    return np.asarray(both @ weight.reshape(n, k * k, m).astype(np.float64))


def sampled_error(weight: Array, tile: int, seed: int = 0) -> float:
    """The largest error of float32 on random tiles, relative to each channel's largest output.

    A few channels of outputs are tried, on inputs of both signs and on positive ones. NaN where
    the weights hold what is not finite. Weights are ``(o, c, k, k)``; axes between count as `c`.
    """
    weight = weight.reshape(len(weight), -1, *weight.shape[-2:])
    rng = np.random.default_rng(seed)
    o, c, k, _ = weight.shape
    some = weight[np.unique(np.linspace(0, o - 1, 16).astype(int))]
    matrices = cook_toom(tile, tile + k - 1)
    seen = as_array(matrices.inputs).astype(np.float32)
    shown = as_array(matrices.outputs).astype(np.float32)
    normal = rng.standard_normal((8, c, tile + k - 1, tile + k - 1)).astype(np.float32)
    d = np.concatenate([normal, abs(normal)])
    with np.errstate(all="ignore"):
        u = transformed_weights(some.transpose(0, 2, 3, 1), tile).astype(np.float32)
        u = u.transpose(1, 0, 2).reshape(*(tile + k - 1,) * 2, len(some), c)
        v = np.matmul(np.matmul(seen, d), seen.T).transpose(2, 3, 0, 1)
        products = np.matmul(v, u.swapaxes(2, 3)).transpose(2, 3, 0, 1)
        found = np.matmul(np.matmul(shown, products), shown.T).astype(np.float64)
        windows = np.lib.stride_tricks.sliding_window_view(d, (k, k), (2, 3))
        patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, c * k * k)
        exact = real(patches) @ real(some.reshape(len(some), -1)).T  # one product: BLAS has threads
        exact = exact.reshape(len(d), tile, tile, len(some)).transpose(0, 3, 1, 2)
        largest = abs(exact).max(axis=(0, 2, 3))
        errors = abs(found - exact).max(axis=(0, 2, 3))
        if not np.isfinite(largest).all():
            return float("nan")
        return float((errors / np.where(largest > 0, largest, 1)).max())


def _infer(rank: int) -> TypeRule:
    def rule(call: OpCall) -> Type:
        x, w = ranked(call, 0, rank + 3), ranked(call, 1, 6)
        result = common_dtype(call, (x, w))
        tile = call.integer("tile")
        if not isinstance(x.shape, tuple) or not isinstance(w.shape, tuple):
            return TensorType(rank + 3, result)
        size = w.shape[0]
        if not isinstance(size, int) or size not in POINTS or not 1 <= tile <= size:
            known = ", ".join(map(str, POINTS))
            raise call.error(
                f"no transform gives {tile} outputs from {size} values",
                hint=f"a tile and its margin are one of {known} long",
            )
        require_equal(call, w.shape[1], size, f"transformed weights are square, got {type_text(w)}")
        frames = _frames(rank, x.shape, w.shape)
        for seen, given in ((w.shape[3], x.shape[1] * frames), (w.shape[4], x.shape[-1])):
            message = f"the weight {type_text(w)} takes other channels than {type_text(x)} has"
            require_equal(call, seen, given, message)
        before, after = paddings(call.attrs["padding"], rank, call.error)
        kernel = (*(frames,) * (rank - 2), size - tile + 1, size - tile + 1)
        windows = [Window(k, 1, b, a) for k, b, a in zip(kernel, before, after, strict=True)]
        check_steps(call, windows, x.shape[2:-1])
        steps = [win.steps(e) for win, e in zip(windows, x.shape[2:-1], strict=True)]
        return TensorType((x.shape[0], w.shape[2], *steps, w.shape[5]), result)

    return rule


def _frames(rank: int, x: Sequence[Dim], weight: Sequence[Dim]) -> Dim:
    """Taps over frames: of three axes, the weight has so many times the blocks of channels."""
    empty = isinstance(x[1], int) and x[1] == 0
    return 1 if rank == 2 or empty else floordiv(weight[3], x[1])


def _choice(which: PrimExpr, values: Sequence[PrimExpr]) -> PrimExpr:
    """The value that a small axis says."""
    chosen = values[-1]
    for at in range(len(values) - 2, -1, -1):
        chosen = te.select(te.eq(which, at), values[at], chosen)
    return chosen


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x, w), (shape, out) = operands(args), known(result)
    wide = working_dtype(out)
    m = int_attr(attrs, "tile")
    (n, channels, *frames, height, width, b), (size, _, o, blocks, _, d) = dims_of(x), dims_of(w)
    assert isinstance(size, int)
    before, after = paddings(attrs["padding"], 2 + len(frames))
    *_, top, left = before
    rows, columns = ceildiv(shape[-3], m), ceildiv(shape[-2], m)

    def pixel(*at: PrimExpr) -> PrimExpr:
        i, c, *frame, h, v, lane = at
        inside: list[PrimExpr] = []
        for k, extent in enumerate(frames):
            frame[k] = frame[k] + c // to_prim_expr(channels) - before[k]
            c = c % to_prim_expr(channels)
            inside += [frame[k] >= 0] if before[k] else []
            inside += [frame[k] < to_prim_expr(extent)] if after[k] else []
        for place, first, extent, tiles in ((h, top, height, rows), (v, left, width, columns)):
            if first:
                inside.append(place >= 0)
            if not always_ge(extent + first, tiles * m + size - m):
                inside.append(place < to_prim_expr(extent))
        value = te.cast(x[(i, c, *frame, h, v, lane)], wide)
        return te.select(te.all_true(*inside), value, imm(0, wide)) if inside else value

    def column(*at: PrimExpr) -> PrimExpr:
        *image, ty, tx, p, q, lane = at
        along = [pixel(*image, ty * m + (k - top), tx * m + q - left, lane) for k in range(size)]
        return _choice(p, input_rows(m, along))

    made = shape[2:-3]  # frames of the result
    tiles = (*made, rows, columns)
    columned = te.compute((n, blocks, *tiles, size, size, b), column, "columns")

    def seen(*at: PrimExpr) -> PrimExpr:
        i, *tile, p, q, c, lane = at
        along = [columned[(i, c, *tile, p, k, lane)] for k in range(size)]
        return _choice(q, input_rows(m, along))

    inputs = te.compute((n, *tiles, size, size, blocks, b), seen, "inputs")
    block, lane_in = te.reduce_axis(blocks, "ci"), te.reduce_axis(b, "lane")

    def product(*at: PrimExpr) -> te.Reduce:
        *tile, g, p, q, lane = at
        value = inputs[(*tile, p, q, block.var, lane_in.var)]
        weight = te.cast(w[p, q, g, block.var, lane_in.var, lane], wide)
        return te.sum(value * weight, axis=[block, lane_in])

    products = te.compute((n, *tiles, o, size, size, d), product, "products")

    def row(*at: PrimExpr) -> PrimExpr:
        i, g, *tile, p, q, lane = at
        along = [products[(i, *tile, g, k, q, lane)] for k in range(size)]
        return _choice(p, output_rows(m, along))

    rowed = te.compute((n, o, *tiles, m, size, d), row, "rows")

    def image(*at: PrimExpr) -> PrimExpr:
        *outer, h, v, lane = at
        along = [rowed[(*outer, h // m, v // m, h % m, k, lane)] for k in range(size)]
        return te.cast(_choice(v % m, output_rows(m, along)), out)

    return te.compute(shape, image, "conv")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, w = args
    assert isinstance(x, np.ndarray)
    assert isinstance(w, np.ndarray)
    m, size = int_attr(attrs, "tile"), w.shape[0]
    rank = x.ndim - 3
    before, after = paddings(attrs["padding"], rank)
    frames = _frames(rank, x.shape, w.shape)
    kernel = (*(frames,) * (rank - 2), size - m + 1, size - m + 1)
    windows = [Window(k, 1, p, q) for k, p, q in zip(kernel, before, after, strict=True)]
    padded = pad_reference(real(x), (*windows, Window(1)), 0)
    if rank == 2:
        found = _of_images(real(padded), real(w), m)
    else:
        n, c, *_ = padded.shape
        seen = np.lib.stride_tricks.sliding_window_view(padded, (w.shape[3] // max(c, 1)), 2)
        images = np.moveaxis(seen, (2, -1), (1, 2))  # images, frames, taps, blocks, ...
        steps = images.shape[1]
        images = images.reshape(n * steps, w.shape[3], *padded.shape[3:])
        found = _of_images(real(images), real(w), m)
        found = np.moveaxis(found.reshape(n, steps, *found.shape[1:]), 1, 2)
    return found.astype(dtype(x.dtype).numpy)


def _of_images(padded: Real, w: Real, m: int) -> Real:
    """The convolution of images ``(n, c / b, h, w, b)`` that have their padding."""
    size = w.shape[0]
    height, width = (e - size + m for e in padded.shape[2:4])
    found = np.zeros((len(padded), w.shape[2], height, width, w.shape[5]))
    matrices = cook_toom(m, size)
    seen, shown = as_array(matrices.inputs), as_array(matrices.outputs)
    for top in range(0, height, m):
        for left in range(0, width, m):
            part = padded[:, :, top : top + size, left : left + size]
            missing = [(0, size - e) for e in part.shape[2:4]]
            d = real(np.pad(part, [(0, 0), (0, 0), *missing, (0, 0)]))
            v = np.einsum("pa,qb,ncabl->npqcl", seen, seen, d)
            products = np.einsum("npqcl,pqocld->nopqd", real(v), w)
            y = np.einsum("ap,bq,nopqd->noabd", shown, shown, products)
            place = found[:, :, top : top + m, left : left + m]
            place[:] = y[:, :, : place.shape[2], : place.shape[3]]
    return found


def _samples(rank: int) -> Callable[[int], Sequence[Sample]]:
    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c, o = s.shape(3, 1, 2)
        h, w = s.shape(2, 5, 6)
        frames = s.shape(rank - 2, 3, 4)

        def call(
            tile: int, size: int, kind: str = "float32", taps: int = 1, **more: object
        ) -> Sample:
            x = s.array((n, c, *frames, h, w, 4), kind, -1, 1)
            weight = s.array((size, size, o, taps * c, 4, 4), kind, -1, 1)
            return sample(_PARAMS, (x, weight), tile=tile, **more)

        deep = 3 if rank == 3 else 1  # taps over frames
        uneven = (*(1,) * (rank - 2), 0, 1, *(0,) * (rank - 2), 2, 3)
        empty = s.array((0, c, *frames, h, w, 2)), s.array((6, 6, o, c, 2, 4))
        return [
            call(4, 6, taps=deep, padding=1),
            call(2, 4, taps=deep, padding=uneven),
            call(4, 6, "float64"),
            call(2, 4, "float16", padding=(*(0,) * (rank - 2), 1, 1)),
            call(2, 6, taps=deep, padding=2),
            call(4, 8, padding=2),
            call(1, 2),
            sample(_PARAMS, empty, tile=4),
        ]

    return rule


_AXES = {2: "h, w", 3: "t, h, w"}


def _row(rank: int) -> OpDef:
    axes = _AXES[rank]
    made = axes.replace(", ", "', ")
    taps = ", of whose taps over frames each has blocks of its own" if rank == 3 else ""
    blocks = "k * c / b" if rank == 3 else "c / b"
    return OpDef(
        f"nn.conv{rank}d_winograd",
        _PARAMS,
        _infer(rank),
        _reference,
        f"""Cross-correlation of stride 1 with transformed weights, channels in blocks innermost.

        x ``(n, c / b, {axes}, b)``, weight ``(s, s, o / d, {blocks}, b, d)``, transformed by
        `transformed_weights`{taps}, result ``(n, o / d, {made}', d)``. `tile` is the outputs made
        along an axis of lines or pixels, of ``s = tile + k - 1`` inputs for kernels of `k`. Padding
        as in nn.conv{rank}d.
        """,
        compute=_compute,
        op_class="convolution",
        pattern="out_fusable",
        samples=_samples(rank),
        precision="always",
        tolerance=1e-4,
    )


OPS: tuple[OpDef, ...] = tuple(_row(rank) for rank in _AXES)
