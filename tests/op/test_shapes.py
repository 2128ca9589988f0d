"""The type rules of shape-changing operators: symbolic results, and what wrong calls are told."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim, dim_min, equal, evaluate
from unity.ir.dtype import FLOAT16, FLOAT32, INT64, DType
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.op.infer import infer_call
from unity.op.registry import attr_value
from unity.op.table import OPS
from unity.script import parse

N, M = dim("n"), dim("m")
EVEN = dim("e", multiple_of=2)
CACHE = dim("c", max=1024)


def t(*shape: Dim, of: DType = FLOAT32) -> TensorType:
    return TensorType(shape, of)


def infer(name: str, *types: Type, **attrs: object) -> Type:
    op = OPS[name]
    given = {p.name: p.default for p in op.params if p.kind == "attr"} | attrs
    return infer_call(op, types, Attrs({k: attr_value(v) for k, v in given.items()}))


def shape(found: Type) -> tuple[Dim, ...]:
    assert isinstance(found, TensorType)
    assert isinstance(found.shape, tuple)
    return found.shape


CASES: list[tuple[Type, tuple[Dim, ...]]] = [
    (infer("matmul", t(N, 4), t(4, M)), (N, M)),
    (infer("matmul", t(N, 1, 3, 4), t(M, 4, 5)), (N, M, 3, 5)),
    (infer("nn.conv2d", t(N, 3, N, 224), t(8, 3, 3, 3), padding=1), (N, 8, N, 224)),
    (infer("nn.conv2d", t(N, 3, 2 * N, 9), t(8, 3, 2, 2), strides=2), (N, 8, N, 4)),
    (infer("nn.conv2d_transpose", t(1, 3, N, 4), t(3, 8, 2, 2), strides=2), (1, 8, 2 * N, 8)),
    (infer("nn.max_pool2d", t(1, 3, 2 * N, 5), pool_size=2, strides=2), (1, 3, N, 2)),
    (infer("nn.adaptive_avg_pool2d", t(N, 3, M, M)), (N, 3, 1, 1)),
    (infer("reshape", t(N, 12), ShapeType((N, 3, 4))), (N, 3, 4)),
    (infer("reshape", t(N, M, 8), ShapeType((-1, 8))), (N * M, 8)),
    (infer("reshape", t(N, N + M, 8), ShapeType((N, N + M, 2, -1))), (N, N + M, 2, 4)),
    (infer("reshape", t(2, N, N + M), ShapeType((N * 2, -1))), (N * 2, N + M)),
    (infer("flatten", t(N, 3)), (3 * N,)),
    (infer("squeeze", t(1, N, 1)), (N,)),
    (infer("expand_dims", t(N, M), axis=(0, -1)), (1, N, M, 1)),
    (infer("concat", TupleType((t(N, 2), t(M, 2), t(3, 2)))), (N + M + 3, 2)),
    (infer("concat", TupleType((t(1, 2, N), t(1, 2, 1))), axis=-1), (1, 2, N + 1)),
    (infer("stack", TupleType((t(N), t(N))), axis=1), (N, 2)),
    (infer("strided_slice", t(N, M), axes=(0,), begin=(0,), end=(None,)), (N, M)),
    (infer("strided_slice", t(N + M, 2), axes=(0,), begin=(N,), end=(N + M,)), (M, 2)),
    (infer("strided_slice", t(1024), axes=(0,), begin=(0,), end=(CACHE,)), (CACHE,)),
    (infer("strided_slice", t(N), axes=(0,), begin=(-1,), end=(None,)), (dim_min(N, 1),)),
    (infer("strided_slice", t(N), axes=(0,), begin=(0,), end=(2**63 - 1,)), (N,)),
    (infer("strided_slice", t(N), axes=(0,), begin=(None,), end=(None,), strides=(-1,)), (N,)),
    (infer("take", t(100, 8), t(N, M, of=INT64), axis=0), (N, M, 8)),
    (infer("nn.pad", t(N, 3), pad_width=(1, 2, 0, M)), (N + 3, M + 3)),
    (infer("tile", t(N, 3), repeats=(M, 2)), (N * M, 6)),
    (infer("one_hot", t(N, of=INT64), t(), t(), depth=7), (N, 7)),
    (infer("permute_dims", t(N, M, 3)), (3, M, N)),
    (infer("broadcast_to", t(1, 3), ShapeType((N, 3))), (N, 3)),
]


@pytest.mark.parametrize(("found", "expected"), CASES)
def test_symbolic_results(found: Type, expected: tuple[Dim, ...]) -> None:
    got = shape(found)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert equal(a, b), f"got {a}, expected {b}"


def test_a_divisor_known_of_a_dim_lets_it_be_divided() -> None:
    half, six = shape(infer("reshape", t(EVEN, 3), ShapeType((-1, 6))))
    assert (evaluate(half, {EVEN: 8}), six) == (4, 6)


def test_a_slice_bound_of_unknown_sign_keeps_python_s_meaning() -> None:
    (length,) = shape(infer("strided_slice", t(10), axes=(0,), begin=(N - 4,), end=(None,)))
    for n in range(12):
        assert evaluate(length, {N: n}) == len(range(10)[n - 4 :])


def test_split_gives_a_tuple() -> None:
    found = infer("split", t(N, 3 * M), indices_or_sections=3, axis=1)
    assert found == TupleType((t(N, M),) * 3)
    found = infer("split", t(N + M), indices_or_sections=(N,))
    assert found == TupleType((t(N), t(M)))


def test_a_last_window_may_stick_out_but_not_start_outside() -> None:
    found = infer("nn.max_pool1d", t(1, 1, N), pool_size=2, strides=3, ceil_mode=True)
    for n in range(2, 12):
        starts = [s for s in range(0, n, 3) if s < n]
        assert evaluate(shape(found)[2], {N: n}) == len(starts)


def test_unknown_shapes_give_unknown_shapes() -> None:
    image = TensorType(4, FLOAT32)
    assert infer("nn.conv2d", image, t(8, 3, 3, 3)) == TensorType(4, FLOAT32)
    assert infer("reshape", TensorType(None, FLOAT32), ShapeType((N, 3))) == t(N, 3)
    assert infer("reshape", t(N), ShapeType(2)) == TensorType(2, FLOAT32)
    assert infer("matmul", TensorType(3, FLOAT32), t(4, 5)) == TensorType(3, FLOAT32)


F16 = t(2, 3, of=FLOAT16)
WRONG: list[tuple[str, tuple[Type, ...], dict[str, object], str, str | None]] = [
    ("matmul", (t(2, 3), t(4, 5)), {}, "got 4, expected 3", None),
    ("matmul", (t(2, N), t(M, 5)), {}, "got m, expected n", "match_cast"),
    ("matmul", (t(2, 3), t()), {}, "scalar", "multiply"),
    ("matmul", (F16, t(3, 2)), {}, "one dtype, got float16, float32", "astype"),
    ("nn.conv2d", (t(1, 3, 8, 8), t(4, 2, 3, 3)), {}, "got 2, expected 3", None),
    ("nn.conv2d", (t(1, 3, 8, 8), t(4, 3, 9, 3)), {}, "reaches over 9 elements", "pad more"),
    ("nn.conv2d", (t(1, 3, 8, 8), t(4, 3, 3, 3)), {"groups": 2}, "divide the 3 input", None),
    ("nn.conv2d", (t(1, 3, 8, 8), t(4, 3, 3, 3)), {"padding": (1, 2, 3)}, "padding must", "begins"),
    ("nn.conv2d", (t(3, 8, 8), t(4, 3, 3, 3)), {}, "'x' must have rank 4", None),
    ("nn.conv2d", (t(1, 3, 8, 8), t(4, 3, 3, 3)), {"data_layout": "NHWC"}, "'NHWC'", "permute"),
    ("nn.max_pool2d", (t(1, 3, 8, 8),), {"pool_size": 2, "padding": 2}, "padding alone", "less"),
    ("reshape", (t(2, 3), ShapeType((4, 2))), {}, "6 elements, (4, 2) 8", None),
    ("reshape", (t(N, 3), ShapeType((-1, 2))), {}, "don't provably divide", "multiple_of"),
    ("reshape", (t(N, 3), ShapeType((-1, -1))), {}, "at most one dim may be -1", None),
    ("squeeze", (t(2, N),), {"axis": 1}, "has extent n, not 1", "match_cast"),
    ("concat", (TupleType((t(2, 3), t(2, 4))),), {}, "tensor 1 along axis 1", None),
    ("split", (t(7),), {"indices_or_sections": 2}, "7 does not provably divide into 2", None),
    ("split", (t(7),), {"indices_or_sections": (3, 2)}, "must ascend", None),
    ("take", (t(4, 2), t(3)), {"axis": 0}, "integer dtype, got float32", "astype"),
    ("take", (t(4, 2), t(3, of=INT64)), {}, "axis is needed", None),
    ("take", (t(0, 2), t(3, of=INT64)), {"axis": 0}, "is empty", None),
    ("nn.softmax", (t(4, of=INT64),), {}, "float dtype, got int64", "astype"),
    ("nn.softmax", (t(4),), {"axis": 1}, "axis 1 is out of range", "[-1, 0]"),
    ("nn.pad", (t(4),), {"pad_width": (1,)}, "pad_width must be 2 dims", "how many before"),
    ("nn.pad", (t(2),), {"pad_width": (2, 0), "pad_mode": "reflect"}, "at least 3", None),
    ("strided_slice", (t(4),), {"axes": (0,), "begin": (0, 1), "end": (2,)}, "begin must be", None),
    (
        "strided_slice", (t(4),), {"axes": (0,), "begin": (0,), "end": (2,), "strides": (0,)},
        "an int other than 0", None,
    ),
    ("permute_dims", (t(4, 5),), {"axes": (0, 0)}, "name an axis twice", None),
    ("broadcast_to", (t(3), ShapeType((3, 4))), {}, "does not broadcast to (3, 4)", "from the end"),
    ("nn.layer_norm", (t(4, 5), t(4)), {}, "got 4, expected 5", None),
    ("nn.batch_norm", (t(4, 5), *[t(5)] * 3, t(4)), {}, "'variance' along axis 1", None),
    ("nn.group_norm", (t(1, 6), t(6), t(6)), {"num_groups": 4}, "divide into 4 groups", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "types", "attrs", "said", "hint"), WRONG)
def test_wrong_calls(
    name: str, types: tuple[Type, ...], attrs: dict[str, object], said: str, hint: str | None
) -> None:
    with pytest.raises(UnityError) as caught:
        infer(name, *types, **attrs)
    assert caught.value.message.startswith(f"{name}: ")
    assert said in caught.value.message
    if hint is not None:
        assert caught.value.hint is not None
        assert hint in caught.value.hint


def test_a_length_that_may_be_negative_is_cut_at_zero() -> None:
    (length,) = shape(infer("strided_slice", t(N), axes=(0,), begin=(2,), end=(None,)))
    assert [evaluate(length, {N: n}) for n in (0, 1, 2, 5)] == [0, 0, 0, 3]


def test_sizes_from_data_that_a_tensor_does_not_fit_are_told() -> None:
    module = parse(
        "@script.function\ndef main(x: f32[Tensor, 6], s: i64[Tensor, 2]):\n"
        "    return R.reshape(x, R.tensor_to_shape(s))\n"
    )
    x, sizes = np.arange(6, dtype=np.float32), np.array([2, 2])
    exe = unity.compile(module)
    assert exe(x, np.array([3, 2])).shape == (3, 2)
    for run in (lambda: exe(x, sizes), lambda: interpret(module, "main", (x, sizes))):
        with pytest.raises(UnityError, match=r"6 elements of shape \(6,\) don't fit \(2, 2\)"):
            run()


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_an_image_without_pixels_is_not_read(method: str) -> None:
    """Zeros where only running tells, an error where the type does."""
    text = (
        "@script.function\ndef main(x: f32[Tensor, 1, 2, {}, w]):\n"
        f'    return R.image.resize2d(x, (2, 3), method="{method}")\n'
    )
    sizes = 'h = dim("h")\nw = dim("w")\n'
    module = parse(sizes + text.format("h"))
    exe = unity.compile(module)
    for shape in ((1, 2, 0, 7), (1, 2, 5, 0), (1, 2, 0, 0)):
        x = np.empty(shape, np.float32)
        for got in (exe(x), interpret(module, "main", (x,))):
            np.testing.assert_array_equal(np.asarray(got), np.zeros((1, 2, 2, 3), np.float32))
    with pytest.raises(UnityError, match="nothing can be resized in"):
        parse(sizes + text.format("0"))
