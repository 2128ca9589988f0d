"""The operators, their shapes, and the axis of each that may be left unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.bench.work import Array, Feeds

OPSET = 18


@dataclass(frozen=True, slots=True)
class Lone:
    """A model of one node.

    Attributes:
        name: What the table calls it.
        kind: The ONNX operator.
        inputs: Shapes of what is given at run time.
        unknown: The axis of each input that a model of unknown size leaves open; -1 for none.
        constants: What the node takes behind its inputs.
        attrs: Its attributes.
        dtype: That of its inputs.
        opset: The version of its operators.
    """

    name: str
    kind: str
    inputs: tuple[tuple[int, ...], ...]
    unknown: tuple[int, ...]
    constants: tuple[Array, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    opset: int = OPSET

    def model(self, known: bool) -> onnx.ModelProto:
        """The model, of fixed sizes or with one unknown axis."""
        code = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        given = []
        for k, (shape, axis) in enumerate(zip(self.inputs, self.unknown, strict=True)):
            dims: list[int | str] = [*shape]
            if not known and axis >= 0:
                dims[axis] = "n"
            given.append(helper.make_tensor_value_info(f"x{k}", code, dims))
        held = [numpy_helper.from_array(c, f"c{k}") for k, c in enumerate(self.constants)]
        outputs = [f"y{k}" for k in range(_OUTPUTS.get(self.kind, 1))]
        names = [*(g.name for g in given), *(h.name for h in held)]
        if self.kind == "Resize":
            names.insert(1, "")
        node = helper.make_node(self.kind, names, outputs, **self.attrs)
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph([node], self.name, given, results, held)
        opsets = [helper.make_opsetid("", self.opset)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=opsets, ir_version=8)
        )

    def feeds(self) -> Feeds:
        """Seeded inputs."""
        rng = np.random.default_rng(0)
        whole = np.dtype(self.dtype).kind in "iu"
        return {
            f"x{k}": (
                rng.integers(1, 99, shape).astype(self.dtype)
                if whole
                else (rng.standard_normal(shape, np.float32)).astype(self.dtype)
            )
            for k, shape in enumerate(self.inputs)
        }


_OUTPUTS = {"TopK": 2, "Split": 2}


def _weight(*shape: int) -> Array:
    rng = np.random.default_rng(1)
    return rng.standard_normal(shape, np.float32) * np.float32(np.prod(shape[1:]) ** -0.5)


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def _convolutions() -> Iterator[Lone]:
    for cin, cout, size, kernel, stride, dilation, groups in (
        (3, 32, 224, 3, 2, 1, 1), (3, 64, 224, 7, 2, 1, 1), (3, 96, 224, 4, 4, 1, 1),
        (16, 16, 160, 3, 1, 1, 1), (48, 48, 60, 3, 1, 1, 1), (80, 160, 40, 3, 2, 1, 1),
        (100, 100, 30, 3, 1, 1, 1), (256, 256, 14, 3, 1, 2, 1), (512, 512, 7, 3, 1, 1, 1),
        (64, 192, 35, 5, 1, 1, 1), (24, 144, 56, 1, 1, 1, 1), (144, 24, 56, 1, 1, 1, 1),
        (320, 1280, 7, 1, 1, 1, 1), (256, 512, 56, 1, 2, 1, 1), (40, 1, 112, 1, 1, 1, 1),
        (64, 64, 56, 3, 1, 1, 4), (256, 256, 28, 3, 1, 1, 32),
        (32, 32, 112, 3, 1, 1, 32), (144, 144, 56, 3, 2, 1, 144), (240, 240, 28, 5, 1, 1, 240),
        (96, 96, 56, 7, 1, 1, 96), (768, 768, 7, 7, 1, 1, 768), (672, 672, 14, 5, 2, 1, 672),
    ):  # fmt: skip
        shape = (1, cin, size, size)
        kind = "depthwise" if groups == cin else f"conv{'' if groups == 1 else groups}"
        name = f"{kind}{kernel}x{kernel}/{stride}{'d2' if dilation > 1 else ''} {cin}-{cout} {size}"
        pad = (kernel - 1) * dilation // 2 if kernel != stride else 0
        yield Lone(
            name, "Conv", (shape,), (3,), (_weight(cout, cin // groups, kernel, kernel),),
            {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": [pad] * 4,
             "group": groups},
        )  # fmt: skip
    for cin, cout, length, kernel, stride in (
        (1, 512, 16000, 10, 5), (512, 512, 3199, 3, 2), (80, 384, 3000, 3, 1),
        (1, 402, 16000, 400, 160), (256, 256, 400, 5, 1), (64, 64, 1000, 1, 1),
    ):  # fmt: skip
        yield Lone(
            f"conv1d k{kernel}/{stride} {cin}-{cout} {length}", "Conv", ((1, cin, length),), (2,),
            (_weight(cout, cin, kernel),), {"strides": [stride], "pads": [kernel // 2] * 2},
        )  # fmt: skip
    for cin, cout, groups, dims in (
        (3, 45, 1, (8, 56, 56)), (64, 64, 1, (8, 28, 28)), (32, 32, 32, (8, 28, 28)),
    ):  # fmt: skip
        yield Lone(
            f"conv3d {cin}-{cout} {dims[-1]}{' depthwise' if groups > 1 else ''}", "Conv",
            ((1, cin, *dims),), (4,), (_weight(cout, cin // groups, 3, 3, 3),),
            {"pads": [1] * 6, "group": groups},
        )  # fmt: skip
    for cin, cout, size, kernel, stride in (
        (64, 32, 56, 2, 2),
        (64, 64, 28, 3, 2),
        (128, 64, 28, 4, 2),
    ):
        yield Lone(
            f"conv_transpose{kernel}x{kernel}/{stride} {cin}-{cout} {size}", "ConvTranspose",
            ((1, cin, size, size),), (3,), (_weight(cin, cout, kernel, kernel),),
            {"strides": [stride] * 2},
        )  # fmt: skip


def _pools() -> Iterator[Lone]:
    for kind, channels, size, kernel, stride in (
        ("MaxPool", 64, 112, 3, 2), ("MaxPool", 64, 112, 2, 2), ("MaxPool", 128, 20, 5, 1),
        ("MaxPool", 192, 35, 3, 1), ("AveragePool", 64, 56, 2, 2), ("AveragePool", 192, 35, 3, 1),
        ("AveragePool", 512, 7, 7, 7),
    ):  # fmt: skip
        pad = kernel // 2 if kernel % 2 and stride < kernel else 0
        yield Lone(
            f"{kind} {kernel}x{kernel}/{stride} {channels} {size}", kind,
            ((1, channels, size, size),), (3,), (),
            {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4},
        )  # fmt: skip
    yield Lone("GlobalAveragePool 1280 7", "GlobalAveragePool", ((1, 1280, 7, 7),), (3,))
    yield Lone("GlobalMaxPool 64 56", "GlobalMaxPool", ((1, 64, 56, 56),), (3,))
    for kind, channels, length, kernel in (("MaxPool", 64, 4000, 4), ("AveragePool", 64, 4000, 2)):
        yield Lone(
            f"{kind}1d {kernel} {channels} {length}", kind, ((1, channels, length),), (2,), (),
            {"kernel_shape": [kernel], "strides": [kernel]},
        )  # fmt: skip
    yield Lone(
        "MaxPool3d 3/2 32 28", "MaxPool", ((1, 32, 8, 28, 28),), (4,), (),
        {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [1] * 6},
    )  # fmt: skip


def _products() -> Iterator[Lone]:
    for m, k, n in (
        (1, 768, 3072), (7, 512, 512), (50, 300, 200), (128, 768, 768), (197, 384, 1536),
        (384, 1024, 1024), (1000, 64, 10), (33, 4096, 33), (2048, 16, 64),
    ):  # fmt: skip
        yield Lone(f"linear {m}x{k}x{n}", "MatMul", ((m, k),), (0,), (_weight(k, n),))
    for left, right, unknown in (
        ((300, 500), (500, 700), (0, -1)), ((12, 128, 64), (12, 64, 128), (1, -1)),
        ((12, 197, 197), (12, 197, 64), (1, -1)), ((8, 1, 512), (8, 512, 64), (2, 1)),
        ((64, 49, 32), (64, 32, 49), (0, 0)), ((1, 4096), (4096, 4096), (-1, 1)),
    ):  # fmt: skip
        sizes = " by ".join("x".join(map(str, s)) for s in (left, right))
        yield Lone(f"matmul {sizes}", "MatMul", (left, right), unknown)


def _rows() -> Iterator[Lone]:
    for kind, shape, axis in (
        ("Softmax", (12, 128, 128), -1), ("Softmax", (1000, 10), -1), ("Softmax", (1, 50257), -1),
        ("Softmax", (1, 19, 128, 128), 1), ("LogSoftmax", (64, 1000), -1),
        ("LogSoftmax", (300, 96), -1),
    ):  # fmt: skip
        named = f"{kind} {'x'.join(map(str, shape))} axis {axis}"
        yield Lone(named, kind, (shape,), (len(shape) - 1,), (), {"axis": axis})
    for rows, width in ((128, 768), (3136, 96), (1, 4096)):
        yield Lone(
            f"LayerNormalization {rows}x{width}", "LayerNormalization", ((rows, width),), (0,),
            (_weight(1, width)[0], _weight(2, width)[0]), {"axis": -1},
        )  # fmt: skip
    yield Lone(
        "InstanceNormalization 64x56x56", "InstanceNormalization", ((1, 64, 56, 56),), (3,),
        (_weight(1, 64)[0], _weight(2, 64)[0]),
    )  # fmt: skip
    yield Lone("LRN 96x55x55", "LRN", ((1, 96, 55, 55),), (3,), (), {"size": 5})
    yield Lone("LpNormalization 100x512", "LpNormalization", ((100, 512),), (0,), (), {"axis": -1})


def _reductions() -> Iterator[Lone]:
    for kind, shape, axes in (
        ("ReduceSum", (256, 1000), (1,)), ("ReduceSum", (1000, 256), (0,)),
        ("ReduceMean", (1, 64, 56, 56), (2, 3)), ("ReduceMean", (1, 197, 768), (1,)),
        ("ReduceMax", (64, 50, 128), (1,)), ("ReduceMax", (1000000,), (0,)),
        ("ReduceL2", (128, 768), (1,)), ("ReduceProd", (512, 512), (0,)),
    ):  # fmt: skip
        named = f"{kind} {'x'.join(map(str, shape))} axes {','.join(map(str, axes))}"
        if kind == "ReduceSum":
            yield Lone(named, kind, (shape,), (len(shape) - 1,), (_ints(*axes),))
        else:
            constants = (_ints(*axes),)
            yield Lone(named, kind, (shape,), (len(shape) - 1,), constants)
    yield Lone("ArgMax 64x1000", "ArgMax", ((64, 1000),), (1,), (), {"axis": 1})
    yield Lone("ArgMax 1x19x128x128", "ArgMax", ((1, 19, 128, 128),), (3,), (), {"axis": 1})
    yield Lone("TopK 5 of 8x1000", "TopK", ((8, 1000),), (1,), (_ints(5),), {"axis": 1})
    yield Lone("TopK 200 of 8400", "TopK", ((1, 8400),), (1,), (_ints(200),), {"axis": 1})
    yield Lone("CumSum 64x1000", "CumSum", ((64, 1000),), (1,), (np.array(1, np.int64),))
    yield Lone("CumSum 1000x64 axis 0", "CumSum", ((1000, 64),), (1,), (np.array(0, np.int64),))


def _pointwise() -> Iterator[Lone]:
    for kind, shape in (
        ("Relu", (1, 64, 112, 112)), ("Sigmoid", (1, 80, 80, 80)), ("Tanh", (128, 3072)),
        ("Exp", (1000, 1000)), ("Log", (1000, 333)), ("Erf", (128, 3072)), ("Sqrt", (77, 1001)),
        ("HardSwish", (1, 240, 28, 28)), ("Softplus", (100, 1000)), ("Sin", (64, 4096)),
    ):  # fmt: skip
        named = f"{kind} {'x'.join(map(str, shape))}"
        yield Lone(named, kind, (shape,), (len(shape) - 1,))
    for kind, left, right, unknown in (
        ("Add", (1, 64, 56, 56), (1, 64, 56, 56), (3, 3)),
        ("Add", (1, 64, 56, 56), (1, 64, 1, 1), (3, -1)),
        ("Mul", (2, 3, 40, 50, 60), (2, 3, 40, 50, 60), (3, 3)),
        ("Mul", (128, 768), (768,), (0, -1)), ("Sub", (100, 1, 300), (1, 200, 300), (-1, 1)),
        ("Div", (1000, 100), (1000, 1), (0, 0)), ("Pow", (500, 500), (1,), (1, -1)),
        ("Greater", (300, 400), (300, 400), (1, 1)),
    ):  # fmt: skip
        sizes = " ".join("x".join(map(str, s)) for s in (left, right))
        yield Lone(f"{kind} {sizes}", kind, (left, right), unknown)
    yield Lone("Div int64 500x200", "Div", ((500, 200),) * 2, (1, 1), dtype="int64")
    yield Lone("Mod int64 500x200", "Mod", ((500, 200),) * 2, (1, 1), dtype="int64")
    yield Lone("Clip 1x32x112x112", "Clip", ((1, 32, 112, 112),), (3,),
               (np.array(0, np.float32), np.array(6, np.float32)))  # fmt: skip
    yield Lone("Cast 512x512 to int64", "Cast", ((512, 512),), (1,), (), {"to": TensorProto.INT64})


def _moves() -> Iterator[Lone]:
    for shape, order in (
        ((1024, 1024), (1, 0)), ((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 64, 56, 56), (0, 2, 3, 1)),
        ((1, 56, 56, 64), (0, 3, 1, 2)), ((8, 16, 32, 64), (3, 0, 1, 2)),
        ((30, 40, 50, 60), (3, 2, 1, 0)), ((1, 4, 14, 4, 14, 96), (0, 1, 3, 2, 4, 5)),
    ):  # fmt: skip
        named = f"Transpose {'x'.join(map(str, shape))} by {''.join(map(str, order))}"
        yield Lone(named, "Transpose", (shape,), (len(shape) - 2,), (), {"perm": order})
    tiles: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((64, 100), (1, 16)), ((1, 32, 28, 28), (1, 1, 2, 2)), ((300,), (500,)),
    )  # fmt: skip
    for tiled, repeats in tiles:
        named = f"Tile {'x'.join(map(str, tiled))} by {','.join(map(str, repeats))}"
        yield Lone(named, "Tile", (tiled,), (len(tiled) - 1,), (_ints(*repeats),))
    for mode in ("constant", "reflect", "edge"):
        yield Lone(
            f"Pad {mode} 32x112x112", "Pad", ((1, 32, 112, 112),), (3,),
            (_ints(0, 0, 2, 3, 0, 0, 2, 3),), {"mode": mode},
        )  # fmt: skip
    yield Lone(
        "Concat 64x56x56 channels", "Concat", ((1, 64, 56, 56),) * 2, (3, 3), (), {"axis": 1}
    )
    yield Lone("Concat 500x33 columns", "Concat", ((500, 33), (500, 45)), (0, 0), (), {"axis": 1})
    yield Lone("Split 128x1536", "Split", ((128, 1536),), (0,), (), {"axis": 1, "num_outputs": 2})
    yield Lone("Slice 1000x1000 inner", "Slice", ((1000, 1000),), (0,),
               (_ints(10), _ints(900), _ints(1)))  # fmt: skip
    yield Lone("Slice 1000x1000 steps of 2", "Slice", ((1000, 1000),), (0,),
               (_ints(0), _ints(1000), _ints(1), _ints(2)))  # fmt: skip
    yield Lone("Slice reversed 300x400", "Slice", ((300, 400),), (0,),
               (_ints(-1), _ints(-1000), _ints(1), _ints(-1)))  # fmt: skip
    rng = np.random.default_rng(2)
    yield Lone("Gather 30000x64 rows", "Gather", ((30000, 64),), (0,), (rng.integers(0, 9, 500),))
    yield Lone("Gather 500x1000 columns", "Gather", ((500, 1000),), (0,),
               (rng.integers(0, 999, 200),), {"axis": 1})  # fmt: skip
    yield Lone("Expand 1x64x1 to 32x64x100", "Expand", ((1, 64, 1),), (1,), (_ints(32, 1, 100),))
    yield Lone("DepthToSpace 64x56x56", "DepthToSpace", ((1, 64, 56, 56),), (3,), (),
               {"blocksize": 2})  # fmt: skip
    yield Lone("SpaceToDepth 16x112x112", "SpaceToDepth", ((1, 16, 112, 112),), (1,), (),
               {"blocksize": 2})  # fmt: skip
    for mode, form in (("nearest", "asymmetric"), ("linear", "half_pixel"),
                       ("linear", "align_corners"), ("cubic", "half_pixel")):  # fmt: skip
        yield Lone(
            f"Resize {mode} {form} 64x28x28", "Resize", ((1, 64, 28, 28),), (3,),
            (np.array([1, 1, 2, 2], np.float32),),
            {"mode": mode, "coordinate_transformation_mode": form},
        )  # fmt: skip


def _all() -> Iterator[Lone]:
    yield from _convolutions()
    yield from _pools()
    yield from _products()
    yield from _rows()
    yield from _reductions()
    yield from _pointwise()
    yield from _moves()


LONE: dict[str, Lone] = {lone.name: lone for lone in _all()}
"""All of them by name."""
