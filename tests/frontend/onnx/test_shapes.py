"""Dynamic dims are symbols, and arithmetic on shapes is done during the import."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.ir.dims import Dynamic, dim
from unity.ir.dtype import FLOAT32
from unity.ir.graph import MatchCast
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings

from .programs import assert_close, imported, main_of, model, ops_of, result_shape, run

f4 = np.float32


def test_dims_take_their_onnx_names_and_nameless_ones_get_fresh_names() -> None:
    module = imported(
        "g (float[batch, T, 3] x, float[?, ?] y) => (float[a, b, c] z) { z = Relu(x) }"
    )
    x, y = (p.type for p in main_of(module).params)
    assert x == TensorType((dim("batch"), dim("T"), 3), FLOAT32)
    assert y == TensorType((dim("y_d0"), dim("y_d1")), FLOAT32)


def test_names_are_made_identifiers_and_the_models_own_are_kept() -> None:
    text = 'g (float["batch-size"] "a/b:0") => (float[n] "out.1") { "out.1" = Relu("a/b:0") }'
    module = imported(text)
    (x,) = main_of(module).params
    assert (x.name, x.type) == ("a_b_0", TensorType((dim("batch_size"),), FLOAT32))
    assert main_of(module).attrs["input_names"] == ("a/b:0",)
    assert main_of(module).attrs["output_names"] == ("out.1",)


def test_a_reshape_by_shape_arithmetic_leaves_only_the_reshape() -> None:
    module = imported(
        """
        g (float[B, S, 768] x) => (float[a, b, c, d] y)
        <int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[2] tail = {12, 64}> {
            shape = Shape(x)
            b = Gather<axis=0>(shape, zero)
            s = Gather<axis=0>(shape, one)
            b1 = Unsqueeze(b, axis)
            s1 = Unsqueeze(s, axis)
            target = Concat<axis=0>(b1, s1, tail)
            y = Reshape(x, target)
        }"""
    )
    assert ops_of(module) == ["reshape"]
    assert result_shape(module) == "B, S, 12, 64"


def test_a_growing_cache_has_the_sum_as_its_length() -> None:
    module = imported(
        """
        g (float[1, 2, P, 4] past, float[1, 2, T, 4] new) => (float[a, b, c, d] y) {
            y = Concat<axis=2>(past, new)
        }"""
    )
    assert result_shape(module) == "1, 2, P + T, 4"
    got = run(module, np.zeros((1, 2, 0, 4), f4), np.ones((1, 2, 3, 4), f4))
    assert got.shape == (1, 2, 3, 4)


def test_positions_count_from_the_cache_on() -> None:
    module = imported(
        """
        g (float[P, 4] past, int64[T] ids) => (int64[n] y)
        <int64 zero = {0}, int64 one = {1}> {
            s = Shape(past)
            p = Gather<axis=0>(s, zero)
            i = Shape(ids)
            t = Gather<axis=0>(i, zero)
            end = Add(p, t)
            y = Range(p, end, one)
        }"""
    )
    assert ops_of(module) == ["arange"]
    assert result_shape(module) == "T"
    np.testing.assert_array_equal(
        run(module, np.zeros((5, 4), f4), np.zeros(3, np.int64)), [5, 6, 7]
    )


@pytest.mark.parametrize(("end", "length"), [("all", "n"), ("more", "y_length")])
def test_a_range_whose_step_is_a_size(end: str, length: str) -> None:
    module = imported(
        f"""
        g (float[n, k] x) => (int64[m] y)
        <int64 zero = {{0}}, int64 first = {{1}}, int64 seven = {{7}}> {{
            shape = Shape(x)
            step = Gather<axis=0>(shape, first)
            all = ReduceProd<keepdims=0>(shape)
            more = Add(all, seven)
            y = Range(zero, {end}, step)
        }}"""
    )
    assert result_shape(module) == length
    for n, k in ((3, 4), (1, 1), (0, 5), (2, 9)):
        stop = n * k + (7 if end == "more" else 0)
        got = run(module, np.zeros((n, k), f4))
        np.testing.assert_array_equal(got, np.arange(0, stop, k))


def test_the_expand_that_torch_writes_is_decided_during_the_import() -> None:
    module = imported(
        """
        g (float[B, 1] x, float[B, S] like) => (float[a, b] y)
        <int64[2] wanted = {-1, 7}, int64[1] two = {2}, int64 minus = {-1}> {
            shape = Shape(like)
            ones = ConstantOfShape<value = int64[1] {1}>(two)
            filled = Mul(ones, minus)
            free = Equal(shape, filled)
            target = Where(free, ones, shape)
            y = Expand(x, target)
        }"""
    )
    assert ops_of(module) == ["broadcast_to"]
    assert result_shape(module) == "B, S"


def test_a_size_used_as_data_becomes_a_tensor() -> None:
    module = imported(
        """
        g (float[n, 4] x) => (float[a, b] y) <int64 zero = {0}> {
            s = Shape(x)
            count = Gather<axis=0>(s, zero)
            f = Cast<to=1>(count)
            y = Div(x, f)
        }"""
    )
    assert ops_of(module) == ["dims", "divide"]
    assert_close(run(module, np.ones((5, 4), f4)), np.full((5, 4), 0.2, f4))


def test_size_floor_and_division_of_sizes() -> None:
    module = imported(
        """
        g (float[n, 6] x) => (float[a, b] y)
        <int64 three = {3}, int64[1] minus = {-1}, int64[1] tail = {3}> {
            size = Size(x)
            part = Div(size, three)
            vector = Reshape(part, minus)
            target = Concat<axis=0>(vector, tail)
            y = Reshape(x, target)
        }"""
    )
    assert result_shape(module) == "2*n, 3"


def test_zero_copies_a_dim_and_minus_one_takes_the_rest() -> None:
    module = imported(
        """
        g (float[n, 4, 6] x) => (float[a, b] y) <int64[2] target = {0, -1}> {
            y = Reshape(x, target)
        }"""
    )
    assert result_shape(module) == "n, 24"


def test_dims_that_must_be_equal_are_asserted_at_run_time() -> None:
    module = imported("g (float[n, 4] x, float[4, m] y) => (float[a, b] z) { z = Gemm(y, x) }")
    casts = [b for b in walk_bindings(main_of(module)) if isinstance(b, MatchCast)]
    assert [b.type for b in casts] == [TensorType((dim("m"), 4), FLOAT32)]
    run(module, np.ones((2, 4), f4), np.ones((4, 2), f4))
    with pytest.raises(UnityError):
        run(module, np.ones((2, 4), f4), np.ones((4, 1), f4))


def test_a_slice_of_a_table_by_a_symbol() -> None:
    module = imported(
        """
        g (float[1, S] x) => (float[a, b] y) <int64[1] one = {1}, int64[1] zero = {0}> {
            shape = Shape(x)
            end = Slice(shape, one, two, zero)
            part = Slice(table, zero, end, one)
            y = Add(x, part)
        }""",
        weights={"table": np.arange(8, dtype=f4).reshape(1, 8), "two": np.asarray([2])},
    )
    got = run(module, np.zeros((1, 3), f4))
    np.testing.assert_array_equal(got, [[0, 1, 2]])
    with pytest.raises(UnityError):
        run(module, np.zeros((1, 9), f4))


def test_shapes_given_at_import_replace_the_models() -> None:
    proto = model("g (float[n, m, 3] x) => (float[a, b, c] y) { y = Relu(x) }")
    module = from_onnx(proto, shapes={"x": (2, "rows", None)})
    assert main_of(module).params[0].type == TensorType((2, dim("rows"), 3), FLOAT32)
    with pytest.raises(UnityError, match="has rank 3, but the shape given is"):
        from_onnx(proto, shapes={"x": (2, 3)})
    with pytest.raises(UnityError, match=r"no input 'z'.*\n.*its inputs are 'x'"):
        from_onnx(proto, shapes={"z": (2,)})


def test_constants_given_at_import_are_no_parameters() -> None:
    proto = model("g (float[n, 6] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }")
    module = from_onnx(proto, constants={"s": np.asarray([-1, 3])})
    assert [p.name for p in main_of(module).params] == ["x"]
    assert result_shape(module) == "2*n, 3"


def test_pooling_with_same_padding_of_a_symbolic_image() -> None:
    module = imported(
        """
        g (float[1, 1, H, 4] x) => (float[a, b, c, d] y) {
            y = MaxPool<kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER">(x)
        }"""
    )
    x = -np.arange(1, 21, dtype=f4).reshape(1, 1, 5, 4)
    np.testing.assert_array_equal(run(module, x)[0, 0], [[-1, -3], [-5, -7], [-13, -15]])
    assert run(module, x[:, :, :4]).shape == (1, 1, 2, 2)


def test_initializers_are_shared_and_keep_their_names() -> None:
    module = imported(
        """
        g (float[n, 2] x) => (float[a, b] y) {
            h = Add(x, w)
            y = Mul(h, w)
        }""",
        weights={"w": np.asarray([1, 2], f4)},
    )
    values = [b.value for b in walk_bindings(main_of(module))]
    constants = {id(a) for v in values for a in getattr(v, "args", ()) if hasattr(a, "data")}
    assert len(constants) == 1


def test_a_squeeze_without_axes_refuses_sizes_that_would_give_another_rank() -> None:
    source = model("g (float[n, 1, 3] x) => (float[n, 3] y) { y = Squeeze(x) }")
    exe = unity.compile(source)
    assert exe(np.ones((4, 1, 3), np.float32)).shape == (4, 3)
    with pytest.raises(UnityError, match="squeeze_would_drop_axis_0 is 1, but it must be at least"):
        exe(np.ones((1, 1, 3), np.float32))
    fixed = unity.compile(from_onnx(source, shapes={"x": (1, None, None)}))
    assert fixed(np.ones((1, 1, 3), np.float32)).shape == (3,)


ENLARGED = """
g (float[1, 2, h, w] "in:0") => (float[a, b, c, d] y)
<float[4] scales = {1.0, 1.0, 3.14159265, 2.0}> { y = Resize<mode="linear">("in:0", , scales) }"""


@pytest.mark.parametrize(
    "fixed", [{"in:0": {2: 4, -1: 6}}, {"in_0": {2: 4, 3: 6}}, {"h": 4, "w": 6}]
)
def test_dims_are_fixed_before_nodes_are_converted(fixed: Dynamic) -> None:
    of = model(ENLARGED)
    with pytest.raises(UnityError, match="no simple fraction"):
        unity.compile(of)
    executable = unity.compile(of, dynamic=fixed)
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 6)).astype(f4)
    want = ort.InferenceSession(of.SerializeToString()).run(None, {"in:0": x})[0]
    np.testing.assert_allclose(
        np.asarray(executable(x)), np.asarray(want, f4), rtol=1e-5, atol=1e-6
    )


def test_dims_are_named_before_nodes_are_converted() -> None:
    of = model("g (float[2, 3] x) => (float[a] y) <int64[1] t = {-1}> { y = Reshape(x, t) }")
    executable = unity.compile(of, dynamic={"x": {0: "rows"}})
    assert executable.signature == "main(x: float32[rows, 3]) -> float32[rows * 3]"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"q": {0: 1}}, "no input 'q'"),
        ({"in:0": {7: 1}}, "has no axis 7"),
        ({"k": 3}, "no input has a symbol 'k'"),
        ({"h": -1}, "h cannot be -1"),
    ],
)
def test_dims_that_a_model_lacks_are_refused(wrong: Dynamic, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        unity.compile(model(ENLARGED), dynamic=wrong)


@pytest.mark.parametrize(("mode", "least"), [("reflect", 5), ("wrap", 4), ("edge", 1)])
def test_extents_too_short_to_pad_are_refused_at_run_time(mode: str, least: int) -> None:
    of = model(
        f"g (float[b, n] x) => (float[b, m] y) "
        f'<int64[4] pads = {{0, 4, 0, 2}}> {{ y = Pad<mode="{mode}">(x, pads) }}',
        opset=19,
    )
    executable, session = unity.compile(of), ort.InferenceSession(of.SerializeToString())
    for extent in (least, 9):
        x = np.random.default_rng(extent).standard_normal((2, extent)).astype(f4)
        np.testing.assert_array_equal(np.asarray(executable(x)), session.run(None, {"x": x})[0])
    message = rf"of y \(Pad\).*y_axis_1_to_pad_by_{mode}.*at least {least}"
    with pytest.raises(UnityError, match=message):
        executable(np.zeros((2, least - 1), f4))


def test_what_needs_sizes_says_how_to_fix_them() -> None:
    with pytest.raises(UnityError, match=r'extent h scaled by.*dynamic=\{"h": \.\.\.\}'):
        from_onnx(model(ENLARGED))
