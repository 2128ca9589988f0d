"""``python -m tests.script.relax_defaults``: TVMScript's operators against TVM, by defaults alone.

Each operator of Relax that tvmscript mode reads is called with what it requires and nothing else,
by Unity's interpreter and by TVM (legalized and compiled for llvm), on seeded random inputs. How
each goes is stored: "same", how the results differ, or why one of both refuses it. Signatures are
compared by `tests/script/test_relax_defaults.py` at every run.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from unity.arguments import REQUIRED, Signature
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array, DType
from unity.op.table import OPS
from unity.script import tvmscript
from unity.script.tvmscript.signatures import FOREIGN

RESULTS = Path(__file__).with_suffix(".json")
FAMILIES = ("", "nn.", "image.", "vision.", "grad.")
SHAPES: Mapping[str, tuple[int, ...]] = {
    "x": (2, 4, 6),
    "y": (2, 4, 6),
    "c": (4,),
    "image1": (1, 4, 8),
    "image2": (1, 4, 8, 8),
    "image3": (1, 4, 6, 6, 6),
    "w1": (2, 4, 3),
    "w2": (2, 4, 3, 3),
    "w3": (2, 4, 3, 3, 3),
    "t1": (4, 2, 3),
    "t2": (4, 2, 3, 3),
    "t3": (4, 2, 3, 3, 3),
    "q": (1, 3, 2, 8),
    "m": (6, 3),
    "part": (1, 4, 6),
    "last": (6,),
    "z": (2, 3),
    "last3": (3,),
    "maps": (2, 2, 3),
    "points": (1, 2, 3, 4),
    "scores": (2, 3, 5),
    "moves": (2, 20),
    "anchors": (1, 5, 4),
    "bias": (1, 2, 3, 3),
    "ranks": (1, 2, 6),
    "of_image": (1, 4, 8, 8),
    "of_pool": (1, 4, 3, 3),
    "of_rows": (3, 3),
    "of_loss": (),
    "of_losses": (6,),
}
"""Float32 inputs by the names that calls use; `OTHERS` are integers, bools, and of some range."""
OTHERS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "i": ("int64", (2, 4, 6)),
    "j": ("int64", (2, 4, 6)),
    "b": ("bool", (2, 4, 6)),
    "d": ("bool", (2, 4, 6)),
    "at": ("int64", (3,)),
    "rows": ("int64", (2, 1)),
    "int8s": ("int8", (2, 4, 6)),
    "p": ("positive", (2, 4, 6)),
    "var": ("positive", (4,)),
    "unit": ("unit", (2, 4, 6)),
    "above": ("above", (2, 4, 6)),
    "steps": ("sorted", (5,)),
    "regions": ("regions", (3, 5)),
    "lengths": ("int64", (2,)),
    "one": ("arange", (3,)),
    "two": ("arange", (3,)),
    "classes": ("int64", (6,)),
    "shares": ("shares", (3, 5)),
    "draws": ("share", (2, 1)),
    "boxes": ("boxes", (1, 6, 4)),
    "found": ("found", (2, 6, 6)),
    "counts": ("counts", (2,)),
    "places": ("int32", (2, 6)),
    "repeated": ("int64", (12,)),
    "places_from": ("from", (2,)),
    "places_to": ("to", (2,)),
    "steps_by": ("by", (2,)),
    "starts": ("starts", (3,)),
    "longest": ("int32", ()),
}
CALLS: Mapping[str, str] = {
    **dict.fromkeys(("acos", "asin", "atanh"), "unit"),
    "acosh": "above",
    **dict.fromkeys(("log", "sqrt", "rsqrt"), "p"),
    **dict.fromkeys(("power", "divide", "floor_divide", "floor_mod", "mod"), "p, p"),
    **{f"logical_{k}": "b, d" for k in ("and", "or", "xor")},
    "logical_not": "b",
    **{f"bitwise_{k}": "i, j" for k in ("and", "or", "xor")},
    "bitwise_not": "i",
    "left_shift": "i, j",
    "right_shift": "i, j",
    "arange": "5",
    "astype": 'x, "int32"',
    "broadcast_to": "c, (3, 4)",
    "clip": "x, -0.5, 0.5",
    "concat": "(x, y)",
    "stack": "(x, y)",
    "dequantize": 'int8s, R.const(0.5), R.const(3, "int8")',
    "quantize": 'x, R.const(0.5), R.const(3, "int8")',
    "expand_dims": "x, 1",
    "flip": "x, 1",
    "full": "(2, 3), R.const(1.5)",
    "full_like": "x, R.const(1.5)",
    "gather_elements": "x, j",
    "gather_nd": "x, rows",
    "matmul": "x, m",
    "linear": "x, m",
    "one_hot": "at, R.prim_value(1.0), R.prim_value(0.0), 5",
    "ones": '(2, 3), "float32"',
    "zeros": '(2, 3), "float32"',
    "reshape": "x, (4, 12)",
    "repeat": "x, 2",
    "scatter_elements": "x, j, y",
    "strided_slice": "x, axes=[1], begin=[0], end=[2]",
    "split": "x, 2",
    "take": "c, at",
    "tile": "x, (1, 2, 1)",
    "shape_to_tensor": "R.shape_of(x)",
    "tensor_to_shape": "two",
    "where": "b, x, y",
    "hamming_window": '8, True, 0.54, 0.46, "float32"',
    "ewise_fma": "x, y, x",
    "image.resize2d": "image2, (5, 11)",
    "image.resize3d": "image3, (4, 9, 5)",
    "image.affine_grid": "maps, (4, 5)",
    "image.grid_sample": "image2, points",
    "vision.roi_align": "image2, regions, (2, 3), 0.5, sample_ratio=2",
    "vision.roi_pool": "image2, regions, (2, 3), 0.5",
    "vision.multibox_transform_loc": "scores, moves, anchors",
    "vision.all_class_non_max_suppression": (
        "boxes, ranks, R.const(2), R.const(0.3), R.const(0.1)"
    ),
    "vision.get_valid_counts": "found",
    "vision.non_max_suppression": "found, counts, places",
    "unique": "repeated",
    "dynamic_strided_slice": "m, places_from, places_to, steps_by",
    "grad.avg_pool2d_backward": "of_image, image2",
    "grad.max_pool2d_backward": "of_image, image2",
    "grad.nll_loss_backward": "of_loss, m, classes",
    "grad.take_backward": "of_rows, m, at, axis=0",
    "nn.attention_bias": "q, q, q, bias",
    "median": "x",
    "einsum": '(x, m), "abc,cd->bad"',
    "outer": "last, c",
    "eye": "3",
    "eye_like": "m",
    "meshgrid": "(last, c)",
    "collapse_sum_to": "x, (1, 6)",
    "collapse_sum_like": "x, last",
    "bucketize": "x, steps",
    "index_tensor": "m, (at, at)",
    "index_put": "m, (one, two), last3",
    "reverse_sequence": "x, lengths",
    "multinomial_from_uniform": "shares, draws, rows",
    "nn.cross_entropy_with_logits": "m, m",
    "nn.nll_loss": "m, classes",
    "layout_transform": "image2, T.index_map(lambda n, c, h, w: (n, c // 4, h, w, c % 4))",
    "nn.pixel_shuffle": "image2, 2",
    "nn.dropout": "x",
    "nn.attention": "q, q, q",
    "nn.attention_var_len": "q, q, q, starts, longest",
    "nn.batch_norm": "x, c, c, c, var, axis=1",
    "nn.group_norm": "x, c, c, num_groups=2, channel_axis=1, axes=[2]",
    "nn.instance_norm": "x, c, c, channel_axis=1, axes=[2]",
    "scatter_nd": "m, rows, z",
    "slice_scatter": "x, part, 0, 1, 1",
    "topk": "x",
    "nn.layer_norm": "x, last, last, axes=[-1]",
    "nn.rms_norm": "x, last",
    "nn.pad": "x, (0, 0, 1, 1, 0, 2)",
    "nn.prelu": "x, c",
    **{f"nn.conv{k}d": f"image{k}, w{k}" for k in (1, 2, 3)},
    **{f"nn.conv{k}d_transpose": f"image{k}, t{k}" for k in (1, 2, 3)},
    **{
        f"nn.{kind}_pool{k}d": f"image{k}"
        for kind in ("max", "avg", "adaptive_avg")
        for k in (1, 2, 3)
    },
}
"""What each operator requires; others take `x`, or `x` and `y`."""
MORE: Mapping[str, tuple[str, str]] = {
    "nonzero, a scalar": ("nonzero", "longest"),
    "nn.avg_pool1d, padded": ("nn.avg_pool1d", "image1, pool_size=3, padding=1"),
    "nn.avg_pool2d, padded": ("nn.avg_pool2d", "image2, pool_size=3, padding=1"),
    "nn.avg_pool3d, padded": ("nn.avg_pool3d", "image3, pool_size=3, padding=1"),
    "nn.adaptive_avg_pool2d, 3": ("nn.adaptive_avg_pool2d", "image2, 3"),
    **{
        f"image.resize2d, {method}, {mode}": (
            "image.resize2d",
            f'image2, (5, 11), method="{method}", coordinate_transformation_mode="{mode}"',
        )
        for method in ("nearest_neighbor", "linear", "cubic")
        for mode in ("asymmetric", "align_corners", "pytorch_half_pixel", "tf_half_pixel_for_nn")
    },
    "image.resize2d, a part": (
        "image.resize2d",
        "image2, (5, 11), roi=[0.2, 0.1, 1.3, 0.8], extrapolation_value=3.0, "
        'coordinate_transformation_mode="tf_crop_and_resize"',
    ),
    "image.resize2d, in another layout": (
        "image.resize2d",
        'image2, (5, 11), layout="NHWC"',
    ),
    **{
        f"image.grid_sample, {method}, {mode}, {corners}": (
            "image.grid_sample",
            f'image2, points, method="{method}", padding_mode="{mode}", align_corners={corners}',
        )
        for method in ("nearest", "bilinear", "bicubic")
        for mode in ("border", "reflection")
        for corners in (True, False)
    },
    "image.affine_grid, edges": ("image.affine_grid", "maps, (4, 5), align_corners=False"),
    "vision.roi_align, the largest": (
        "vision.roi_align",
        'image2, regions, 3, 1.0, sample_ratio=3, aligned=True, mode="max"',
    ),
    "vision.multibox_transform_loc, clipped": (
        "vision.multibox_transform_loc",
        "scores, moves, anchors, clip=True, threshold=0.3, keep_background=False",
    ),
    "vision.all_class_non_max_suppression, by image": (
        "vision.all_class_non_max_suppression",
        'boxes, ranks, R.const(9), R.const(0.2), R.const(-0.1), output_format="tensorflow"',
    ),
    "vision.get_valid_counts, without labels": (
        "vision.get_valid_counts",
        "found, score_threshold=0.4, id_index=-1",
    ),
    **{
        f"vision.non_max_suppression, {label}": (
            "vision.non_max_suppression",
            f"found, counts, places, {said}",
        )
        for label, said in (
            ("boxes", "return_indices=False, iou_threshold=0.1"),
            ("all labels", "force_suppress=True, top_k=4, max_output_size=2"),
            ("to the bottom", "return_indices=False, invalid_to_bottom=True, iou_threshold=0"),
        )
    },
    **{
        f"grad.{kind}_pool2d_backward, {label}": (
            f"grad.{kind}_pool2d_backward",
            f"of_pool, image2, pool_size=(3, 3), strides=(3, 3), padding=(1, 1, 1, 1){more}",
        )
        for kind in ("avg", "max")
        for label, more in (("padded", ""), ("all counted", ", count_include_pad=True"))
    },
    "grad.nll_loss_backward, weighted": (
        "grad.nll_loss_backward",
        'of_losses, m, classes, last3, reduction="none", ignore_index=1',
    ),
    "grad.nll_loss_backward, the sum": (
        "grad.nll_loss_backward",
        'of_loss, m, classes, last3, reduction="sum"',
    ),
    "unique, all of it": (
        "unique",
        "i, sorted=False, return_index=True, return_inverse=True, return_counts=True",
    ),
    "unique, along an axis": ("unique", "i, axis=1, return_counts=True"),
    "median, along an axis": ("median", "x, axis=1"),
    "std, along axes": ("std", "x, axis=[1, 2], keepdims=True"),
    "meshgrid, xy": ("meshgrid", '(last, c), indexing="xy"'),
    "index_put, added": ("index_put", "m, (at, at), last3, accumulate=True"),
    "nn.nll_loss, of each": ("nn.nll_loss", 'm, classes, reduction="none"'),
    "nn.nll_loss, weighted": ("nn.nll_loss", "m, classes, last3"),
    "bucketize, from the right": ("bucketize", "x, steps, out_int32=True, right=True"),
    "topk, values": ("topk", 'x, 2, ret_type="values"'),
    "topk, indices": ("topk", 'x, 2, ret_type="indices"'),
    "nn.attention, causal": ("nn.attention", 'q, q, q, causal_mask="TopLeft"'),
    "nn.batch_norm, not of training": (
        "nn.batch_norm",
        "x, c, c, c, var, axis=1, training=False",
    ),
    "nn.batch_norm, alone": ("nn.batch_norm", "x, c, c, c, var, 1, scale=False, center=False"),
    "nn.instance_norm, batch": ("nn.instance_norm", "x, c, c, channel_axis=1, axes=[0, 2]"),
    "layout_transform, padded": (
        "layout_transform",
        "x, T.index_map(lambda a, b, c: (c // 4, b, a, c % 4)), pad_value=T.float32(2)",
    ),
    "layout_transform, joined": (
        "layout_transform",
        "image2, T.index_map(lambda n, c, h, w: (h, n * 4 + c, w))",
    ),
    **{
        f"nn.pad, {mode}": ("nn.pad", f'm, [1, 2, 0, 1], pad_mode="{mode}"')
        for mode in ("replicate", "circular", "reflect")
    },
    "median along a list": ("median", "x, [1]"),
    **{
        f"take, mode {mode}": (
            "take",
            f'm, R.subtract(R.multiply(at, R.const(9, "int64")), R.const(4, "int64")), 0, "{mode}"',
        )
        for mode in ("wrap", "clip")
    },
    "const of a Python int": ("add", "i, R.const(1, 'int64')"),
}
"""Calls beside those by defaults alone, where one attribute shows what another's default is."""


def operators() -> dict[str, Callable[..., object]]:
    """TVM's operators that tvmscript mode reads, by name."""
    relax: Any = import_module("tvm.script").relax
    found: dict[str, Callable[..., object]] = {}
    for family in FAMILIES:
        place = getattr(relax, family[:-1]) if family else relax
        for name in dir(place):
            function = getattr(place, name)
            if f"{family}{name}" in OPS and inspect.isfunction(function):
                found[f"{family}{name}"] = function
    return found


OF_V018 = {"layout_transform": ("axis_separators", "input_axis_separators")}
"""Parameters that TVM had in v0.18, whose sources are read as well."""


def ours(name: str) -> list[tuple[str, object]]:
    """What tvmscript mode takes for an operator: parameters and defaults, in order."""
    row = FOREIGN.get(f"R.{name}")
    signature = OPS[name].signature if row is None else row.signature
    return [p for p in plain(signature) if p[0] not in OF_V018.get(name, ())]


def plain(signature: Signature) -> list[tuple[str, object]]:
    """Parameters and defaults in comparable values."""
    return [(p.name, _plain(p.default)) for p in signature.params]


def _plain(value: object) -> object:
    if value is REQUIRED:
        return "required"
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    return value.name if isinstance(value, DType) else value


def call_of(name: str) -> str:
    """The arguments of a call that says nothing but what it must."""
    if name in CALLS:
        return CALLS[name]
    needed = [p for p in OPS[name].params if p.default is REQUIRED]
    return ", ".join(("x", "y")[: max(1, len(needed))])


def program(name: str, args: str) -> tuple[str, list[Array]]:
    """A function that makes one call, and its inputs."""
    rng = np.random.default_rng(0)
    params: list[str] = []
    arrays: list[Array] = []
    for each in (*SHAPES, *OTHERS):
        if each not in _words(args):
            continue
        kind, shape = OTHERS.get(each, ("float32", SHAPES.get(each, ())))
        array = _random(rng, kind, shape)
        arrays.append(array)
        params.append(f'{each}: R.Tensor({shape}, "{array.dtype}")')
    call = f"R.{name}({args})"
    if name in ("shape_of", "tensor_to_shape"):  # whose results are no arrays
        call = f"R.shape_to_tensor({call})"
    text = f"@R.function\ndef main({', '.join(params)}):\n    gv = {call}\n    return gv\n"
    return text, arrays


def _words(text: str) -> set[str]:
    quoted = text.split('"')[::2]
    return set("".join(c if c.isalnum() or c in "_=" else " " for c in " ".join(quoted)).split())


def _random(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    match kind:
        case "float32":
            return rng.standard_normal(shape).astype(np.float32)
        case "positive":
            return rng.uniform(0.5, 2, shape).astype(np.float32)
        case "unit":
            return rng.uniform(-0.9, 0.9, shape).astype(np.float32)
        case "arange":
            return np.arange(shape[0])
        case "regions":
            begin, size = rng.uniform(0, 8, (shape[0], 2)), rng.uniform(1, 9, (shape[0], 2))
            rows = np.concatenate([np.zeros((shape[0], 1)), begin, begin + size], axis=1)
            return rows.astype(np.float32)
        case "boxes" | "found":
            lead, low = shape[:2], rng.uniform(0, 4, (*shape[:2], 2))
            parts = [low, low + rng.uniform(1, 3, low.shape)]
            if kind == "found":
                labels = rng.integers(-1, 2, (*lead, 1)).astype(np.float64)
                parts = [labels, rng.uniform(-0.2, 1, (*lead, 1)), *parts]
            return np.concatenate(parts, axis=2).astype(np.float32)
        case "starts":
            return np.array([0, 1, 3], np.int32)
        case "from" | "to" | "by":
            return np.array({"from": (-1, 0), "to": (-9, 2), "by": (-2, 1)}[kind])
        case "counts":
            return rng.integers(3, 7, shape).astype(np.int32)
        case "sorted":
            return np.sort(rng.standard_normal(shape)).astype(np.float32)
        case "share":
            return rng.uniform(0, 1, shape).astype(np.float32)
        case "shares":
            return rng.dirichlet(np.ones(shape[1]), shape[0]).astype(np.float32)
        case "above":
            return rng.uniform(1.1, 3, shape).astype(np.float32)
        case "bool":
            return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
        case _:
            return np.asarray(rng.integers(0, 2, shape)).astype(kind)


def by_tvm(text: str, arrays: list[Array]) -> list[Array]:
    """What TVM's compiled program gives."""
    tvm: Any = import_module("tvm")
    script: Any = import_module("tvm.script")
    relax: Any = import_module("tvm.relax")

    found = script.from_source(text)
    module = found if isinstance(found, tvm.IRModule) else tvm.IRModule({"main": found})
    machine = relax.VirtualMachine(relax.build(module, tvm.target.Target("llvm")), tvm.cpu())
    given = [tvm.runtime.tensor(a) for a in arrays]
    return _arrays(machine["main"](*given))


def _reason(error: Exception) -> str:
    """The last line that says something: TVM's end with a picture of the place."""
    lines = [line.strip(" |^") for line in str(error).splitlines()]
    return next((line for line in reversed(lines) if line), "")[:120]


def _arrays(value: Any) -> list[Array]:
    if hasattr(value, "numpy"):
        return [np.asarray(value.numpy())]
    return [a for item in value for a in _arrays(item)]


def by_unity(text: str, arrays: list[Array]) -> list[Array]:
    """What Unity's interpreter makes of the same text."""
    result = interpret(tvmscript.parse(text), "main", arrays)
    return [np.asarray(a) for a in (result if isinstance(result, tuple) else (result,))]


def compared(name: str, args: str) -> str:
    """How one call goes."""
    text, arrays = program(name, args)
    try:
        expected = by_tvm(text, arrays)
    except Exception as error:  # TVM's errors are of any type
        return f"TVM can't: {type(error).__name__}: {_reason(error)}"
    try:
        got = by_unity(text, arrays)
    except UnityError as error:
        return f"Unity refuses: {error.message}"
    if len(got) != len(expected):
        return f"{len(expected)} results in TVM, {len(got)} in Unity"
    for mine, theirs in zip(got, expected, strict=True):
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return f"TVM {theirs.dtype}{theirs.shape}, Unity {mine.dtype}{mine.shape}"
        if not np.allclose(mine.astype(float), theirs.astype(float), 1e-4, 1e-5, equal_nan=True):
            return f"values differ by {np.abs(mine.astype(float) - theirs.astype(float)).max():.3g}"
    return "same"


def calls() -> dict[str, tuple[str, str]]:
    """Every comparison: a name, the operator and its arguments."""
    return {**{name: (name, call_of(name)) for name in operators()}, **MORE}


def main() -> None:
    """Compare all, store and count."""
    results = {label: compared(*call) for label, call in sorted(calls().items())}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    for label, result in results.items():
        if result != "same":
            print(f"{label}: {result}")
    print(f"{sum(r == 'same' for r in results.values())} of {len(results)} are the same")


if __name__ == "__main__":
    main()
