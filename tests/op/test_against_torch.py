"""References compared with torch: all else that is known of an operator is compared with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.op.registry import RefArg, attr_value
from unity.op.table import OPS
from unity.sample_checks import outputs_of
from unity.script import parse

pytestmark = pytest.mark.torch
RNG = np.random.default_rng(3)


def f32(*shape: int, low: float = -3, high: float = 3) -> Array:
    return RNG.uniform(low, high, shape).astype(np.float32)


def ints(*shape: int, low: int, high: int) -> Array:
    return RNG.integers(low, high + 1, shape)


def ours(name: str, *args: RefArg, **attrs: object) -> tuple[Array, ...]:
    row = OPS[name]
    assert row.reference is not None
    full = {p.name: p.default for p in row.params if p.kind == "attr"} | attrs
    found = row.reference(args, Attrs({k: attr_value(v) for k, v in full.items()}))
    return outputs_of(found)


Case = tuple[str, Sequence[RefArg], dict[str, object], Callable[..., Any]]


def sampled(method: str, mode: str, corners: bool, x: Any, grid: Any) -> Any:
    from torch.nn import functional as f

    points = grid.movedim(1, -1)
    return f.grid_sample(x, points, mode=method, padding_mode=mode, align_corners=corners)


def attended(causal: bool, q: Any, k: Any, v: Any, starts: Any, most: Any, *more: Any) -> Any:
    """Each sequence by itself."""
    import torch
    from torch.nn import functional as f

    ends = (starts, *(more[:1] or (starts,)) * 2)
    parts: list[Any] = []
    for i in range(len(starts) - 1):
        own = [x[:, b[i] : b[i + 1]].transpose(1, 2) for x, b in zip((q, k, v), ends, strict=True)]
        found = f.scaled_dot_product_attention(own[0], own[1], own[2], is_causal=causal)
        parts.append(found.transpose(1, 2))
    return torch.cat(parts, 1)


def pulled(pool: Callable[..., Any], grad: Any, x: Any) -> Any:
    """What the gradient of a pool is of its operand."""
    import torch

    x = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(pool(x), x, grad)
    return found


def cases() -> list[Case]:
    import torch
    from torch.nn import functional as f

    x, y = f32(3, 5), f32(3, 5)
    logits = np.log(f32(4, 6, low=0.1, high=1))
    lines = np.log(f32(2, 3, 4, low=0.1, high=1))
    images = f32(2, 3, 4, 5)
    boundaries = np.sort(f32(7))
    grids: list[Case] = [
        (
            "image.grid_sample",
            [images, f32(2, 2, 3, 3, low=-1.5, high=1.5)],
            {"method": method, "padding_mode": mode, "align_corners": corners},
            partial(sampled, method, mode, corners),
        )
        for method in ("bilinear", "nearest", "bicubic")
        for mode in ("zeros", "border", "reflection")
        for corners in (True, False)
    ]
    return [
        ("atan2", [x, y], {}, torch.atan2),
        ("log_add_exp", [f32(3, 5, low=-60, high=60), f32(3, 5, low=-60, high=60)], {},
         torch.logaddexp),
        ("std", [x], {"axis": 1}, lambda a: torch.std(a, 1, unbiased=False)),
        ("logsumexp", [f32(3, 5, low=-60, high=60)], {"axis": 1},
         lambda a: torch.logsumexp(a, 1)),
        ("median", [x], {"axis": 0}, lambda a: torch.median(a, 0)),
        ("median", [f32(4, 6)], {"axis": 1, "keepdims": True},
         lambda a: torch.median(a, 1, keepdim=True)),
        ("median", [f32(4, 6)], {}, torch.median),
        ("median", [np.where(np.greater(x, 1), np.float32(np.nan), x)], {"axis": 1},
         lambda a: torch.median(a, 1)),
        ("collapse_sum_to", [f32(2, 3, 4), (3, 1)], {}, lambda a: a.sum_to_size(3, 1)),
        ("outer", [f32(3), f32(4)], {}, torch.outer),
        ("einsum", [(f32(2, 3, 4), f32(2, 4, 5))], {"subscripts": "bij,bjk->bik"},
         lambda a, b: torch.einsum("bij,bjk->bik", a, b)),
        ("einsum", [(f32(3, 4), f32(4, 5), f32(5, 2))], {"subscripts": "ij,jk,kl"},
         lambda *a: torch.einsum("ij,jk,kl", *a)),
        ("nn.nll_loss", [logits, ints(4, low=0, high=5)], {}, f.nll_loss),
        ("nn.nll_loss", [logits, ints(4, low=0, high=5), f32(6, low=0.1)], {},
         lambda a, t, w: f.nll_loss(a, t, w)),
        ("nn.nll_loss", [lines, ints(2, 4, low=0, high=2), f32(3, low=0.1)],
         {"ignore_index": 1, "reduction": "sum"},
         lambda a, t, w: f.nll_loss(a, t, w, ignore_index=1, reduction="sum")),
        ("nn.nll_loss", [lines, ints(2, 4, low=0, high=2)], {"reduction": "none"},
         lambda a, t: f.nll_loss(a, t, reduction="none")),
        ("nn.pixel_shuffle", [f32(2, 8, 3, 5)], {"upscale_factor": 2},
         lambda a: f.pixel_shuffle(a, 2)),
        ("nn.pixel_unshuffle", [f32(2, 2, 6, 9)], {"downscale_factor": 3},
         lambda a: f.pixel_unshuffle(a, 3)),
        ("meshgrid", [(f32(3), f32(4), f32(2))], {}, lambda *a: torch.meshgrid(*a, indexing="ij")),
        ("meshgrid", [(f32(3), f32(4), f32(2))], {"indexing": "xy"},
         lambda *a: torch.meshgrid(*a, indexing="xy")),
        ("roll", [x], {"shift": (1, -2), "axis": (0, 1)}, lambda a: torch.roll(a, (1, -2), (0, 1))),
        ("index_tensor", [f32(4, 5, 6), (ints(3, 1, low=-4, high=3), ints(2, low=0, high=4))], {},
         lambda a, i, j: a[i, j]),
        ("index_put", [f32(4, 5), (ints(6, low=0, high=3), ints(6, low=0, high=4)), f32(6)],
         {"accumulate": True}, lambda a, i, j, v: a.index_put((i, j), v, accumulate=True)),
        ("bucketize", [x, boundaries], {}, torch.bucketize),
        ("bucketize", [np.append(boundaries, np.float32(np.nan)), boundaries], {"right": True},
         lambda a, b: torch.bucketize(a, b, right=True)),
        ("bucketize", [x, np.append(boundaries, np.float32(np.nan))], {}, torch.bucketize),
        ("eye", [], {"n": 4, "m": 6}, lambda: torch.eye(4, 6)),
        ("hamming_window", [], {"window_size": 9}, lambda: torch.hamming_window(9)),
        ("hann_window", [], {"window_size": 8, "periodic": False},
         lambda: torch.hann_window(8, periodic=False)),
        ("blackman_window", [], {"window_size": 7}, lambda: torch.blackman_window(7)),
        ("image.resize2d", [images, (7, 3)], {"coordinate_transformation_mode": "half_pixel"},
         lambda a: f.interpolate(a, (7, 3), mode="bilinear")),
        ("image.resize2d", [images, (3, 9)],
         {"method": "cubic", "coordinate_transformation_mode": "align_corners"},
         lambda a: f.interpolate(a, (3, 9), mode="bicubic", align_corners=True)),
        ("image.resize2d", [images, (7, 9)],
         {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric",
          "rounding_method": "floor"},
         lambda a: f.interpolate(a, (7, 9), mode="nearest")),
        ("image.resize3d", [f32(1, 2, 3, 4, 3), (5, 2, 6)], {},
         lambda a: f.interpolate(a, (5, 2, 6), mode="trilinear")),
        ("image.affine_grid", [f32(2, 2, 3), (3, 4)], {},
         lambda a: f.affine_grid(a, [2, 1, 3, 4], align_corners=True).movedim(-1, 1)),
        ("image.affine_grid", [f32(2, 3, 4), (3, 4, 2)], {"align_corners": False},
         lambda a: f.affine_grid(a, [2, 1, 3, 4, 2], align_corners=False).movedim(-1, 1)),
        *grids,
        ("unique", [ints(3, 7, low=-2, high=3)], {},
         torch.unique),
        ("unique", [ints(9, 2, low=0, high=1)],
         {"axis": 0, "return_inverse": True, "return_counts": True},
         lambda a: torch.unique(a, return_inverse=True, return_counts=True, dim=0)),
        ("unique", [ints(3, 4, low=0, high=2)], {"return_inverse": True},
         lambda a: torch.unique(a, return_inverse=True)),
        ("nn.celu", [x], {"alpha": 0.7}, lambda a: f.celu(a, 0.7)),
        ("nn.softsign", [x], {}, f.softsign),
        ("nn.thresholdedrelu", [x], {"alpha": 0.4}, lambda a: f.threshold(a, 0.4, 0)),
        ("nn.logsigmoid", [f32(3, 5, low=-90, high=90)], {}, f.logsigmoid),
        ("nn.adaptive_max_pool1d", [f32(2, 3, 7)], {"output_size": 3},
         lambda a: f.adaptive_max_pool1d(a, 3)),
        ("nn.adaptive_max_pool2d", [images], {"output_size": (3, 2)},
         lambda a: f.adaptive_max_pool2d(a, (3, 2))),
        ("nn.adaptive_max_pool3d", [f32(1, 2, 3, 4, 5)], {"output_size": 2},
         lambda a: f.adaptive_max_pool3d(a, 2)),
        ("grad.max_pool2d_backward", [f32(2, 3, 2, 3), images],
         {"pool_size": 3, "strides": 2, "padding": (1, 1)},
         partial(pulled, lambda a: f.max_pool2d(a, 3, 2, 1))),
        ("grad.avg_pool2d_backward", [f32(2, 3, 2, 3), images],
         {"pool_size": 2, "strides": 2, "padding": (0, 1), "count_include_pad": True},
         partial(pulled, lambda a: f.avg_pool2d(a, 2, 2, (0, 1)))),
        ("nn.attention_var_len",
         [f32(1, 9, 2, 4), f32(1, 9, 2, 4), f32(1, 9, 2, 3), np.array([0, 2, 6, 9], np.int32),
          np.array(4, np.int32)], {"causal_mask": "TopLeft"}, partial(attended, True)),
        ("nn.attention_var_len",
         [f32(1, 9, 2, 4), f32(1, 7, 2, 4), f32(1, 7, 2, 3), np.array([0, 2, 6, 9], np.int32),
          np.array(4, np.int32), np.array([0, 3, 4, 7], np.int32), np.array(3, np.int32)], {},
         partial(attended, False)),
        ("nn.relu6", [f32(3, 5, low=-9, high=9)], {}, f.relu6),
    ]  # fmt: skip


@pytest.mark.long("it imports torch")
def test_references_give_what_torch_gives() -> None:
    import torch

    for name, args, attrs, function in cases():
        flat = [a for arg in args for a in ((arg,) if isinstance(arg, np.ndarray) else arg)]
        found = function(*(torch.from_numpy(a) for a in flat if isinstance(a, np.ndarray)))
        expected = [found] if isinstance(found, torch.Tensor) else [*found]
        got = ours(name, *args, **attrs)
        assert len(got) == len(expected), name
        for mine, theirs in zip(got, expected, strict=True):
            assert mine.shape == tuple(theirs.shape), (name, attrs)
            wide = theirs.numpy().astype(np.float64)
            np.testing.assert_allclose(
                mine.astype(np.float64), wide, rtol=1e-5, atol=1e-5, err_msg=name
            )


@pytest.mark.parametrize(
    ("method", "mode"),
    [
        *product(("bilinear", "nearest"), ("zeros", "border", "reflection")),
        ("bicubic", "zeros"),
        ("bicubic", "border"),
    ],
)
def test_coordinates_that_are_no_numbers(method: str, mode: str) -> None:
    import torch

    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    nan, inf = np.nan, np.inf
    points = [[nan, 0], [0, nan], [inf, 0], [-inf, 0], [0.3, 0.2], [nan, inf]]
    grid = np.array([[points]], np.float32)
    wanted = torch.nn.functional.grid_sample(
        torch.from_numpy(x), torch.from_numpy(grid), method, mode, align_corners=False
    ).numpy()
    module = parse(f"""
@script.function
def main(x: f32[Tensor, 1, 1, 3, 3], grid: f32[Tensor, 1, 2, 1, 6]):
    return R.image.grid_sample(x, grid, method={method!r}, padding_mode={mode!r})
""")
    given = [x, np.ascontiguousarray(grid.transpose(0, 3, 1, 2))]
    for found in (interpret(module, "main", given), unity.compile(module)(*given)):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
