"""Operands that are known only at run time: axes, shapes, bounds, counts, widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import check, model, result_shape

X = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def agree(
    graph: str, *runs: Mapping[str, Array], opset: int = 18, compiled: bool = False
) -> onnx.ModelProto:
    """Interpreted (and compiled once for all runs), results are the reference evaluator's."""
    of = model(graph, opset)
    module = from_onnx(of)
    check(module)
    executable = unity.compile(of) if compiled else None
    for given in runs:
        wanted = ReferenceEvaluator(of).run(None, dict(given))
        assert isinstance(wanted, list)
        found = interpret(module, "main", list(given.values()))
        results = [found if isinstance(found, tuple) else (found,)]
        if executable is not None:
            got = executable(*given.values())
            results.append(got if isinstance(got, tuple) else (got,))
        for each in results:
            for mine, theirs in zip(each, wanted, strict=True):
                assert isinstance(mine, np.ndarray)
                assert mine.shape == np.shape(theirs)
                np.testing.assert_allclose(mine.astype(np.float64), theirs, rtol=1e-6)
    return of


SLICE = """
    g (float[n, 3, 4] x, int64[2] starts, int64[2] ends, int64[2] axes, int64[2] steps)
    => (float[a, b, c] y) { y = Slice(x, starts, ends, axes, steps) }"""


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((0, 1), (2, 3), (0, 1), (1, 1)),
        ((-1, 3), (-9, -9), (0, 2), (-1, -2)),
        ((1, -3), (2**63 - 1, -1), (-2, -1), (1, 1)),
        ((5, 0), (9, 0), (1, 2), (1, 1)),
        ((2, 9), (-(2**63), 1), (1, 2), (-1, -3)),
    ],
)
def test_slices(
    starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], steps: Sequence[int]
) -> None:
    given = {"starts": ints(*starts), "ends": ints(*ends), "axes": ints(*axes)}
    agree(SLICE, {"x": X, **given, "steps": ints(*steps)})


def test_a_slice_of_known_axes_compiled() -> None:
    graph = """
        g (float[n, 3, 4] x, int64[1] end) => (float[a, 3, 4] y)
        <int64[1] start = {1}, int64[1] axis = {0}> { y = Slice(x, start, end, axis) }"""
    agree(graph, *({"x": X, "end": ints(e)} for e in (2, -1, 0, 99)), compiled=True)


def test_a_step_of_0_and_an_axis_that_is_not_there() -> None:
    module = from_onnx(model(SLICE))
    with pytest.raises(UnityError, match=r"length.*-1"):
        interpret(module, "main", [X, ints(0, 0), ints(1, 1), ints(0, 1), ints(1, 0)])
    with pytest.raises(UnityError, match=r"axis.*3"):
        interpret(module, "main", [X, ints(0, 0), ints(1, 1), ints(0, 3), ints(1, 1)])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"])
def test_reductions(op: str, keepdims: int) -> None:
    dims = "a, b, c" if keepdims else "a"
    graph = f"""
        g (float[n, 3, 4] x, int64[2] axes) => (float[{dims}] y)
        {{ y = {op}<keepdims={keepdims}>(x, axes) }}"""
    agree(graph, *({"x": X, "axes": ints(*a)} for a in ((0, 1), (-1, 0), (2, 1))))


def test_an_unknown_number_of_axes_needs_its_dims_kept() -> None:
    graph = """
        g (float[n, 3, 4] x, int64[k] axes) => (float[a, b, c] y) { y = ReduceSum(x, axes) }"""
    agree(graph, *({"x": X, "axes": ints(*a)} for a in ((0,), (0, 2), (-2,), ())))
    with pytest.raises(UnsupportedError, match="keepdims=0"):
        from_onnx(model(graph.replace("ReduceSum", "ReduceSum<keepdims=0>")))


def test_axes_named_twice_are_refused_where_they_are_dropped() -> None:
    graph = """
        g (float[2, 3, 4] x, int64[2] axes) => (float[a] y)
        { y = ReduceSum<keepdims=0>(x, axes) }"""
    with pytest.raises(UnityError, match="should be 1, got 2"):
        interpret(from_onnx(model(graph)), "main", [X, ints(1, -2)])


@pytest.mark.parametrize("shape", [(4, 6), (-1, 2), (6, -1), (0, 12), (24, 1), (8, 3)])
def test_reshapes(shape: Sequence[int]) -> None:
    graph = "g (float[n, 3, 4] x, int64[2] to) => (float[a, b] y) { y = Reshape(x, to) }"
    agree(graph, {"x": X, "to": ints(*shape)})


def test_a_reshape_compiled() -> None:
    graph = "g (float[n, 3, 4] x, int64[2] to) => (float[a, b] y) { y = Reshape(x, to) }"
    agree(graph, *({"x": X, "to": ints(*s)} for s in ((4, 6), (0, -1))), compiled=True)


def test_a_reshape_whose_parts_are_known_in_part() -> None:
    graph = """
        g (float[n, 3, 4] x, int64[1] k) => (float[n, c, d] y)
        <int64[1] zero = {0}, int64[1] rest = {-1}> {
            shape = Shape(x)
            first = Gather(shape, zero)
            to = Concat<axis=0>(first, k, rest)
            y = Reshape(x, to)
        }"""
    agree(graph, *({"x": X, "k": ints(k)} for k in (2, 4, 12)))
    assert result_shape(from_onnx(model(graph))).startswith("n, ")


def test_shapes_that_don_t_fit_are_refused() -> None:
    graph = "g (float[n, 3, 4] x, int64[2] to) => (float[a, b] y) { y = Reshape(x, to) }"
    module = from_onnx(model(graph))
    for to in (ints(5, 5), ints(-1, -1), ints(-1, 7), ints(-2, 12)):
        with pytest.raises(UnityError):
            interpret(module, "main", [X, to])


def test_squeeze_and_unsqueeze() -> None:
    one = X[:, :1]
    graph = "g (float[a, b, c] x, int64[1] axes) => (float[d, e] y) { y = Squeeze(x, axes) }"
    agree(graph, {"x": one, "axes": ints(1)}, {"x": one, "axes": ints(-2)})
    with pytest.raises(UnityError):
        interpret(from_onnx(model(graph)), "main", [X, ints(1)])
    graph = "g (float[a, b, c] x, int64[2] at) => (float[d, e, f, g, h] y) { y = Unsqueeze(x, at) }"
    agree(graph, *({"x": X, "at": ints(*a)} for a in ((0, 1), (4, 1), (-1, 2))))
    with pytest.raises(UnityError):
        interpret(from_onnx(model(graph)), "main", [X, ints(1, 1)])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_paddings(mode: str) -> None:
    graph = f"""
        g (float[n, 3, 4] x, int64[4] pads, float value, int64[2] axes) => (float[a, b, c] y)
        {{ y = Pad<mode="{mode}">(x, pads, value, axes) }}"""
    for pads, axes in (((1, 0, 2, 1), (1, 2)), ((0, 2, 1, 0), (-1, 0)), ((2, 0, 0, 0), (2, 1))):
        if mode in ("reflect", "wrap") and axes == (-1, 0):
            pads = (0, 1, 1, 0)
        given = {"pads": ints(*pads), "value": np.float32(1.5), "axes": ints(*axes)}
        agree(graph, {"x": X, **{k: np.asarray(v) for k, v in given.items()}}, opset=19)


def test_negative_paddings_take_away() -> None:
    graph = "g (float[n, 3, 4] x, int64[6] pads) => (float[a, b, c] y) { y = Pad(x, pads) }"
    module = from_onnx(model(graph))
    found = interpret(module, "main", [X, ints(0, -1, 2, -1, 0, -3)])
    np.testing.assert_array_equal(found, np.pad(X[:1, 1:, :1], ((0, 0), (0, 0), (2, 0))))
    with pytest.raises(UnityError):
        interpret(module, "main", [X, ints(0, -2, 0, 0, -2, 0)])


def test_what_was_taken_away_is_not_reflected() -> None:
    graph = "g (float[2, 3, 4] x) => (float[2, 3, 5] y)"
    pads = '<int64[6] pads = {0, 0, -1, 0, 0, 2}> { y = Pad<mode="reflect">(x, pads) }'
    found = interpret(from_onnx(model(f"{graph} {pads}")), "main", [X])
    np.testing.assert_array_equal(found, np.pad(X[..., 1:], ((0, 0), (0, 0), (0, 2)), "reflect"))
    late = graph.replace("x)", "x, int64[6] pads)") + '{ y = Pad<mode="reflect">(x, pads) }'
    late = late.replace("float[2, 3, 5]", "float[a, b, c]")
    again = interpret(from_onnx(model(late)), "main", [X, ints(0, 0, -1, 0, 0, 2)])
    np.testing.assert_array_equal(again, found)


def test_ranges() -> None:
    graph = "g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }"
    numbers = ((0, 10, 3), (5, -5, -2), (3, 3, 1), (3, 0, 1))
    agree(graph, *(dict(zip("abc", map(np.asarray, n), strict=True)) for n in numbers))
    with pytest.raises(UnityError, match=r"length.*-1"):
        interpret(from_onnx(model(graph)), "main", [np.asarray(v) for v in (0, 5, 0)])
    graph = graph.replace("int64", "float")
    floats = [np.asarray(v, np.float32) for v in (0.5, 2.75, 0.25)]
    agree(graph, dict(zip("abc", floats, strict=True)))


def test_counts() -> None:
    agree(
        "g (float[n, 3, 4] x, int64[3] k) => (float[a, b, c] y) { y = Tile(x, k) }",
        *({"x": X, "k": ints(*k)} for k in ((1, 2, 3), (0, 1, 1))),
    )
    agree(
        """g (float[n, 3, 4] x, int64[1] k) => (float[a, b, c] v, int64[a, b, c] i)
        { v, i = TopK<axis=1>(x, k) }""",
        *({"x": X, "k": ints(k)} for k in (0, 1, 3)),
    )
    agree(
        """g (float[n, 3, 4] x, int64[2] k) => (float[n, b, 4] y, float[n, c, 4] z)
        { y, z = Split<axis=1>(x, k) }""",
        *({"x": X, "k": ints(*k)} for k in ((1, 2), (0, 3))),
    )
    agree(
        "g (int64[3] k) => (float[a, b, c] y) { y = ConstantOfShape(k) }",
        {"k": ints(2, 0, 3)},
        {"k": ints(2, 1, 3)},
    )
    agree(
        """g (int64[m] i, int64 depth, float[2] values) => (float[m, d] y)
        { y = OneHot(i, depth, values) }""",
        {"i": ints(0, -1, 3), "depth": np.asarray(4), "values": np.asarray([2, 5], np.float32)},
    )


def test_a_depth_that_is_a_size() -> None:
    agree(
        """g (int64[3] i, float[n] x) => (float[3, d] y) <float[2] values = {2, 5}>
        { s = Shape(x) depth = Squeeze(s) y = OneHot(i, depth, values) }""",
        {"i": ints(0, -1, 3), "x": np.zeros(4, np.float32)},
        {"i": ints(1, 2, 1), "x": np.zeros(3, np.float32)},
        compiled=True,
    )


def test_a_count_below_0_is_refused() -> None:
    graph = "g (float[n, 3, 4] x, int64[1] k) => (float[a, b, c] v, int64[a, b, c] i)"
    module = from_onnx(model(f"{graph} {{ v, i = TopK(x, k) }}"))
    for k in (-1, 5):
        with pytest.raises(UnityError):
            interpret(module, "main", [X, ints(k)])


@pytest.mark.parametrize("op", ["Tril", "Triu"])
def test_triangles_and_sums_along_an_axis(op: str) -> None:
    graph = f"""
        g (float[n, 3, 4] x, int64 k) => (float[n, 3, 4] y)
        {{ y = Trilu<upper={int(op == "Triu")}>(x, k) }}"""
    agree(graph, *({"x": X, "k": np.asarray(k)} for k in (-2, 0, 1, 9)))
    graph = """
        g (float[n, 3, 4] x, int64 axis) => (float[n, 3, 4] y)
        { y = CumSum<exclusive=1>(x, axis) }"""
    agree(graph, *({"x": X, "axis": np.asarray(k)} for k in (0, 1, -1)))


def test_a_shape_to_expand_to() -> None:
    graph = "g (float[n, 1, 4] x, int64[4] to) => (float[a, b, c, d] y) { y = Expand(x, to) }"
    given = [{"x": X[:, :1], "to": ints(*to)} for to in ((5, 1, 3, 4), (1, 2, 1, 1))]
    agree(graph, *given, compiled=True)
    with pytest.raises(UnityError):
        interpret(from_onnx(model(graph)), "main", [X[:, :1], ints(1, 3, 1, 1)])


def test_gathered_elements_up_to_a_size_known_at_run_time() -> None:
    graph = """
        g (float[2, 3, 4] x, int64[1] k, int64[1, 1, 1] zero) => (float[a, 1, 1] y)
        <int64[2] ones = {1, 1}> {
            shape = Concat<axis=0>(k, ones)
            indices = Expand(zero, shape)
            y = GatherElements<axis=1>(x, indices)
        }"""
    zero = np.ones((1, 1, 1), np.int64)
    module = from_onnx(model(graph))
    for k in (1, 2):
        found = interpret(module, "main", [X, ints(k), zero])
        np.testing.assert_array_equal(found, X[:k, 1:2, :1])
    with pytest.raises(UnityError):
        interpret(module, "main", [X, ints(3), zero])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales_and_sizes_of_images(mode: str) -> None:
    x = np.random.default_rng(5).standard_normal((1, 1, 5, 7)).astype(np.float32)
    graph = f"""
        g (float[n, 1, h, w] x, float[4] scales) => (float[n, c, a, b] y)
        {{ y = Resize<mode="{mode}">(x, , scales) }}"""
    for scales in ((1, 1, 2, 1.5), (1, 1, 0.6, 0.65)):
        given = {"x": x, "scales": np.asarray(scales, np.float32)}
        close(graph, given)
    graph = f"""
        g (float[n, 1, h, w] x, int64[2] sizes) => (float[n, 1, a, b] y)
        {{ y = Resize<mode="{mode}", axes=[2, 3]>(x, , , sizes) }}"""
    for sizes in ((9, 3), (5, 7), (2, 14)):
        close(graph, {"x": x, "sizes": ints(*sizes)})


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_images_in_proportion(policy: str) -> None:
    x = np.random.default_rng(5).standard_normal((1, 1, 5, 7)).astype(np.float32)
    for mode in ("nearest", "linear"):
        graph = f"""
            g (float[n, 1, 5, 7] x, int64[2] sizes) => (float[n, 1, a, b] y)
            {{ y = Resize<mode="{mode}", axes=[2, 3],
                         keep_aspect_ratio_policy="{policy}">(x, , , sizes) }}"""
        close(graph, {"x": x, "sizes": ints(8, 9)})
        close(graph, {"x": x, "sizes": ints(3, 7)})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_images_without_aliases(mode: str) -> None:
    x = np.random.default_rng(5).standard_normal((1, 2, 9, 7)).astype(np.float32)
    for outside in (0, 1):
        graph = f"""
            g (float[n, 2, h, w] x, int64[2] sizes) => (float[n, 2, a, b] y)
            {{ y = Resize<mode="{mode}", axes=[2, 3], antialias=1,
                         exclude_outside={outside}>(x, , , sizes) }}"""
        close(graph, {"x": x, "sizes": ints(4, 3)})
        close(graph, {"x": x, "sizes": ints(12, 5)})


def test_a_region_of_an_image() -> None:
    x = np.random.default_rng(5).standard_normal((1, 1, 5, 7)).astype(np.float32)
    graph = """
        g (float[n, 1, h, w] x, float[4] part, int64[2] sizes) => (float[n, 1, a, b] y)
        { y = Resize<mode="linear", axes=[2, 3], extrapolation_value=10.0,
                     coordinate_transformation_mode="tf_crop_and_resize">(x, part, , sizes) }"""
    for part in ((0.1, 0.2, 0.6, 0.9), (-0.2, 0.3, 1.2, 0.8)):
        for sizes in ((3, 3), (1, 9)):
            given = {"part": np.asarray(part, np.float32), "sizes": ints(*sizes)}
            close(graph, {"x": x, **given})


def close(graph: str, given: Mapping[str, Array]) -> None:
    """The reference evaluator's results, up to the rounding of positions in float32."""
    of = model(graph, 19)
    module = from_onnx(of)
    check(module)
    found = interpret(module, "main", list(given.values()))
    wanted = ReferenceEvaluator(of).run(None, dict(given))
    assert isinstance(found, np.ndarray)
    assert isinstance(wanted, list)
    assert found.shape == np.shape(wanted[0])
    np.testing.assert_allclose(found.astype(np.float64), wanted[0], rtol=1e-4, atol=1e-5)
