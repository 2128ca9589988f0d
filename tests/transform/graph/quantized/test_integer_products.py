"""IntegerProducts: quantized products and convolutions in integers, to the quantum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from tests.codegen.llvm.levels import LEVELS
from tests.frontend.onnx.programs import model
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, FoldConstants, IntegerProducts, Normalize

BYTES = Context(target=LEVELS["avx512 with dots"])
PAIRS = Context(target=LEVELS["avx2"])
BOTH = pytest.mark.parametrize("context", [BYTES, PAIRS], ids=["bytes", "pairs of int16"])
RNG = np.random.default_rng(3)
MATRIX = RNG.integers(-128, 128, (40, 24), dtype=np.int8)
TAPS = RNG.integers(-128, 128, (16, 5, 3, 3), dtype=np.int8)
COLUMNS = np.linspace(0.01, 0.02, 24, dtype=np.float32)
OUTPUTS = np.linspace(0.001, 0.002, 16, dtype=np.float32)


def integers(module: IRModule, context: Context = BYTES) -> IRModule:
    for step in (Normalize(), FoldConstants(), IntegerProducts(), EliminateDeadCode()):
        module = step(module, context)
    return module


PRODUCT = """
@script.function
def main(x: f32[Tensor, 3, 40]) -> f32[Tensor, 3, 24]:
    q = R.quantize(x, 0.05, R.const({zero}, "{of}"), out_dtype="{of}")
    a = R.dequantize(q, 0.05, R.const({zero}, "{of}"))
    w = R.dequantize(R.const("w"), {scale}, R.const(0, "int8"), axis=1)
    return R.nn.relu(R.matmul(a, w))
"""


@pytest.mark.rotated(1 / 4)
@BOTH
@pytest.mark.parametrize("scale", ["0.02", 'R.const("columns")'], ids=["tensor", "columns"])
@pytest.mark.parametrize(("of", "zero"), [("uint8", 0), ("uint8", 131), ("int8", -7)])
def test_products_are_those_of_the_reals(of: str, zero: int, scale: str, context: Context) -> None:
    text = PRODUCT.format(of=of, zero=zero, scale=scale)
    module = parse(text, {"w": MATRIX, "columns": COLUMNS})
    after = integers(module, context)
    assert 'out_dtype="int32"' in print_module(after)
    assert "i8[Tensor" not in print_module(after).replace("u8[Tensor", ""), "int8 became uint8"
    assert ('astype(held, dtype="int16")' in print_module(after)) is (context is PAIRS)
    assert ('dtype="uint8"' in print_module(after)) is (context is BYTES), "stored once"
    x = RNG.standard_normal((3, 40)).astype(np.float32) * 3
    want = np.asarray(interpret(module, "main", [x]))
    largest = float(np.abs(want).max())
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=1e-5 * largest)


def assert_within_a_quantum(got: object, want: Array) -> None:
    """Of the last quantization here."""
    steps = np.abs(np.asarray(got) - want) / 0.06
    assert steps.max() <= 1.001
    assert (steps > 0.5).mean() < 0.02, "halves are rare"


IMAGE = """
@script.function
def main(x: f32[Tensor, 1, 5, 9, 9]) -> f32[Tensor, 1, 16, {size}, {size}]:
    q = R.quantize(x, 0.05, R.const({zero}, "uint8"), out_dtype="uint8")
    a = R.dequantize(q, 0.05, R.const({zero}, "uint8"))
    w = R.dequantize(R.const("w"), R.const("outputs"), R.const(0, "int8"), axis=0)
    y = R.add(R.nn.conv2d(a, w, padding={padding}, strides={strides}), R.const("bias"))
    r = R.quantize(R.nn.relu(y), 0.04, R.const(0, "uint8"), out_dtype="uint8")
    b = R.dequantize(r, 0.04, R.const(0, "uint8"))
    v = R.dequantize(R.const("v"), R.const("outputs"), R.const(0, "int8"), axis=0)
    z = R.add(R.nn.conv2d(b, v), b)
    s = R.quantize(z, 0.06, R.const(90, "uint8"), out_dtype="uint8")
    return R.dequantize(s, 0.06, R.const(90, "uint8"))
"""


@pytest.mark.rotated(1 / 4)
@BOTH
@pytest.mark.parametrize("zero", [0, 117])
@pytest.mark.parametrize(("padding", "strides", "size"), [(1, 1, 9), (0, 1, 7), (1, 2, 5)])
def test_convolutions_differ_by_a_quantum_at_most(
    zero: int, padding: int, strides: int, size: int, context: Context
) -> None:
    text = IMAGE.format(zero=zero, padding=padding, strides=strides, size=size)
    bias = RNG.standard_normal((1, 16, 1, 1)).astype(np.float32)
    square = RNG.integers(-128, 128, (16, 16, 1, 1), dtype=np.int8)
    constants: dict[str, Array] = {"w": TAPS, "v": square, "outputs": OUTPUTS, "bias": bias}
    module = parse(text, constants)
    after = integers(module, context)
    assert print_module(after).count('out_dtype="int32"') == 2
    x = RNG.standard_normal((1, 5, 9, 9)).astype(np.float32) * 3
    want = np.asarray(interpret(module, "main", [x]))
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        assert_within_a_quantum(got, want)


def test_convolutions_of_images_of_unknown_size() -> None:
    text = IMAGE.format(zero=117, padding=1, strides=1, size=9)
    known = "x: f32[Tensor, 1, 5, 9, 9]) -> f32[Tensor, 1, 16, 9, 9]:"
    assert known in text
    unknown = "x: f32[Tensor, n, 5, h, w]) -> f32[Tensor, n, 16, h, w]:"
    dims = "".join(f'{name} = dim("{name}", min=1)\n' for name in "nhw")
    constants: dict[str, Array] = {
        "w": TAPS,
        "v": RNG.integers(-128, 128, (16, 16, 1, 1), dtype=np.int8),
        "outputs": OUTPUTS,
        "bias": RNG.standard_normal((1, 16, 1, 1)).astype(np.float32),
    }
    module = parse(dims + text.replace(known, unknown), constants)
    after = integers(module)
    assert print_module(after).count('out_dtype="int32"') == 2
    compiled = unity.compile(module, cache=None)
    for n, h, w in ((1, 9, 9), (2, 5, 33), (1, 1, 2), (1, 14, 17)):
        x = RNG.standard_normal((n, 5, h, w)).astype(np.float32) * 3
        want = np.asarray(interpret(module, "main", [x]))
        for got in (interpret(after, "main", [x]), compiled(x)):
            assert_within_a_quantum(got, want)


MOVED = """
@script.function
def main(x: f32[Tensor, 1, 16, 8, 8]) -> f32[Tensor, 1, 16, 4, 4]:
    q = R.quantize(x, 0.05, R.const(9, "uint8"), out_dtype="uint8")
    a = R.nn.max_pool2d(R.dequantize(q, 0.05, R.const(9, "uint8")), pool_size=2, strides=2)
    p = R.quantize(a, {again}, R.const(9, "uint8"), out_dtype="uint8")
    b = R.dequantize(p, {again}, R.const(9, "uint8"))
    w = R.dequantize(R.const("w"), 0.01, R.const(0, "int8"))
    return R.nn.conv2d(b, w)
"""


@BOTH
@pytest.mark.parametrize(("again", "calls"), [("0.05", 0), ("0.051", 1)])
def test_what_moves_between_equal_scales_moves_as_integers(
    again: str, calls: int, context: Context
) -> None:
    square = RNG.integers(-128, 128, (16, 16, 1, 1), dtype=np.int8)
    module = parse(MOVED.format(again=again), {"w": square})
    after = integers(module, context)
    assert context is BYTES or 'dtype="uint8"' not in print_module(after), "stored as int16"
    assert print_module(after).count("R.round") == 1 + calls
    x = RNG.standard_normal((1, 16, 8, 8)).astype(np.float32)
    want, got = (
        np.asarray(interpret(module, "main", [x])),
        np.asarray(interpret(after, "main", [x])),
    )
    np.testing.assert_allclose(got, want, rtol=0, atol=0.05 * 1.3 + 1e-4)


def test_without_dot_products_of_bytes_nothing_changes() -> None:
    module = parse(PRODUCT.format(of="uint8", zero=3, scale="0.02"), {"w": MATRIX})
    assert IntegerProducts()(module, Context(target=LEVELS["avx512"])) is module


OTHERS = {
    "int8 with a zero point": (MATRIX, np.array(5, np.int8)),
    "uint8": ((MATRIX.astype(np.int16) + 128).astype(np.uint8), np.array(117, np.uint8)),
    "zero points of columns": (MATRIX, np.arange(-12, 12, dtype=np.int8)),
}


@pytest.mark.parametrize("which", OTHERS)
def test_weights_that_8_bits_do_not_hold_are_moved(which: str) -> None:
    weight, zero = OTHERS[which]
    text = PRODUCT.format(of="uint8", zero=3, scale='R.const("columns")')
    module = parse(
        text.replace('R.const(0, "int8")', 'R.const("zero")'),
        {"w": weight, "columns": COLUMNS, "zero": zero},
    )
    after = integers(module)
    assert "R.sum" in print_module(after), "the offset times the sum of a row"
    x = RNG.standard_normal((3, 40)).astype(np.float32) * 3
    want = np.asarray(interpret(module, "main", [x]))
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        np.testing.assert_allclose(
            np.asarray(got), want, rtol=0, atol=1e-5 * float(np.abs(want).max())
        )


@pytest.mark.parametrize(("context", "products"), [(BYTES, 3), (PAIRS, 2)])
def test_convolutions_by_such_weights_are_sums_of_two(context: Context, products: int) -> None:
    """Or of one, where the target multiplies integers of 16 bits."""
    text = IMAGE.format(zero=117, padding=1, strides=2, size=5)
    constants: dict[str, Array] = {
        "w": TAPS,
        "v": RNG.integers(-128, 128, (16, 16, 1, 1), dtype=np.int8),
        "outputs": OUTPUTS,
        "bias": RNG.standard_normal((1, 16, 1, 1)).astype(np.float32),
    }
    module = parse(text.replace('R.const(0, "int8")', 'R.const(9, "int8")', 1), constants)
    after = integers(module, context)
    assert print_module(after).count('out_dtype="int32"') == products
    x = RNG.standard_normal((1, 5, 9, 9)).astype(np.float32) * 3
    want = np.asarray(interpret(module, "main", [x]))
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        assert_within_a_quantum(got, want)


def test_convolutions_by_weights_that_no_two_bytes_add_up_to_stay_as_they_are() -> None:
    text = IMAGE.format(zero=0, padding=0, strides=1, size=7)
    bias, square = np.zeros((1, 16, 1, 1), np.float32), np.ones((16, 16, 1, 1), np.int8)
    constants: dict[str, Array] = {
        "w": np.full(TAPS.shape, 255, np.uint8),
        "v": square,
        "outputs": OUTPUTS,
        "bias": bias,
    }
    module = parse(text.replace('R.const(0, "int8")', 'R.const(0, "uint8")', 1), constants)
    assert print_module(integers(module)).count('out_dtype="int32"') == 1


CHANNELS = """
@script.function
def main(x: f32[Tensor, 1, 16, 9, 9]) -> f32[Tensor, 1, 16, {size}, {size}]:
    q = R.quantize(x, 0.05, R.const(3, "uint8"), out_dtype="uint8")
    a = R.dequantize(q, 0.05, R.const(3, "uint8"))
    v = R.dequantize(R.const("v"), R.const("outputs"), R.const(0, "int8"), axis=0)
    y = R.add(R.nn.conv2d(a, v), R.const("bias"))
    r = R.quantize(y, 0.04, R.const({zero}, "uint8"), out_dtype="uint8")
    b = R.dequantize(r, 0.04, R.const({zero}, "uint8"))
    w = R.dequantize(R.const("w"), R.const("outputs"), R.const({point}, "int8"), axis=0)
    z = R.nn.conv2d(b, w, padding={padding}, strides={strides}, groups=16)
    s = R.quantize(z, 0.06, R.const(90, "uint8"), out_dtype="uint8")
    return R.dequantize(s, 0.06, R.const(90, "uint8"))
"""


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("point", [0, 9])
@pytest.mark.parametrize("zero", [0, 117])
@pytest.mark.parametrize(("padding", "strides", "size"), [(1, 1, 9), (0, 1, 7), (1, 2, 5)])
def test_convolutions_of_each_channel_are_of_integers_where_bytes_have_dot_products(
    zero: int, point: int, padding: int, strides: int, size: int
) -> None:
    text = CHANNELS.format(zero=zero, point=point, padding=padding, strides=strides, size=size)
    constants: dict[str, Array] = {
        "v": RNG.integers(-128, 128, (16, 16, 1, 1), dtype=np.int8),
        "w": RNG.integers(-128, 128, (16, 1, 3, 3), dtype=np.int8),
        "outputs": OUTPUTS,
        "bias": RNG.standard_normal((1, 16, 1, 1)).astype(np.float32),
    }
    module = parse(text, constants)
    after = integers(module)
    assert print_module(after).count('out_dtype="int32"') == 2
    assert print_module(integers(module, PAIRS)).count('out_dtype="int32"') == 1
    x = RNG.standard_normal((1, 16, 9, 9)).astype(np.float32) * 3
    want = np.asarray(interpret(module, "main", [x]))
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        assert_within_a_quantum(got, want)


LONG = """
@script.function
def main(x: u8[Tensor, 1, {depth}]) -> f32[Tensor, 1, 16]:
    a = R.dequantize(x, 0.5, R.const(0, "uint8"))
    return R.matmul(a, R.dequantize(R.const("w"), 0.25, R.const(0, "int8")))
"""


@pytest.mark.parametrize(("depth", "integer"), [(66311, True), (66312, False)])
def test_sums_that_int32_does_not_hold_are_of_reals(depth: int, integer: bool) -> None:
    module = parse(LONG.format(depth=depth), {"w": np.full((depth, 16), 127, np.int8)})
    after = integers(module)
    assert ('out_dtype="int32"' in print_module(after)) is integer
    x = np.full((1, depth), 255, np.uint8)
    want = np.full((1, 16), depth * 255.0 * 127 / 8)
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-3)


def test_sums_by_bytes_without_a_sign_are_of_reals_where_they_are_long() -> None:
    depth = 40000
    text = LONG.format(depth=depth).replace('R.const(0, "int8")', 'R.const(0, "uint8")')
    module = parse(text, {"w": np.full((depth, 16), 255, np.uint8)})
    x = np.full((1, depth), 255, np.uint8)
    want = np.full((1, 16), depth * 255.0 * 255 / 8)
    for got in (interpret(integers(module), "main", [x]), unity.compile(module, cache=None)(x)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-3)


def test_integers_far_apart_are_no_bytes() -> None:
    text = """
@script.function
def main(x: u8[Tensor, 2, 40]) -> i32[Tensor, 2, 24]:
    return R.matmul(R.astype(x, dtype="int32"), R.const("w"))
"""
    weight = MATRIX.astype(np.int32)
    weight[0], weight[1] = -(2**31), 2**31 - 1
    module, x = parse(text, {"w": weight}), RNG.integers(0, 256, (2, 40)).astype(np.uint8)
    want = np.asarray(interpret(module, "main", [x]))
    np.testing.assert_array_equal(np.asarray(interpret(integers(module), "main", [x])), want)


WIDE = """
@script.function
def main(x: u8[Tensor, 1, 5, 9, 9]) -> i32[Tensor, 1, 16, 9, 9]:
    a = R.subtract(R.astype(x, dtype="int32"), R.const({zero}, "int32"))
    return R.nn.conv2d(a, R.astype(R.const("w"), dtype="int32"), padding=1)
"""


@pytest.mark.parametrize(("zero", "integer"), [(255, True), (256, False), (-1, False)])
def test_zero_points_that_8_bits_do_not_hold_pad_no_image(zero: int, integer: bool) -> None:
    module = parse(WIDE.format(zero=zero), {"w": TAPS})
    after = integers(module)
    assert ('out_dtype="int32"' in print_module(after)) is integer
    x = RNG.integers(0, 256, (1, 5, 9, 9)).astype(np.uint8)
    want = np.asarray(interpret(module, "main", [x]))
    for got in (interpret(after, "main", [x]), unity.compile(module, cache=None)(x)):
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize(("winograd", "integer"), [(True, False), (False, True)])
def test_winograd_in_float32_is_preferred_to_int16(winograd: bool, integer: bool) -> None:
    text = """
@script.function
def main(x: u8[Tensor, 1, 64, 28, 28]) -> f32[Tensor, 1, 64, 28, 28]:
    a = R.dequantize(x, 0.05, R.const(0, "uint8"))
    return R.nn.conv2d(a, R.dequantize(R.const("w"), 0.02, R.const(0, "int8")), padding=1)
"""
    square = RNG.integers(-128, 128, (64, 64, 3, 3), dtype=np.int8)
    module = Normalize()(parse(text, {"w": square}), PAIRS)
    after = print_module(IntegerProducts(winograd=winograd)(module, PAIRS))
    assert ('out_dtype="int32"' in after) is integer
    assert 'out_dtype="int32"' in print_module(integers(module)), "bytes are faster"


@pytest.mark.parametrize(("rows", "integer"), [(2, False), (3, True)])
def test_a_row_by_weights_of_bytes_reads_bytes(rows: int, integer: bool) -> None:
    text = PRODUCT.replace("Tensor, 3", f"Tensor, {rows}").format(of="uint8", zero=0, scale="0.02")
    after = print_module(integers(parse(text, {"w": MATRIX}), PAIRS))
    assert ('out_dtype="int32"' in after) is integer


UNUSUAL = {
    "a zero point of each row": """
    q = R.quantize(x, 0.05, R.const("z"), out_dtype="uint8", axis=0)
    d = R.dequantize(q, 0.05, R.const(9, "uint8"))""",
    "zero points along an axis that moves": """
    q = R.quantize(x, 0.05, R.const(9, "uint8"), out_dtype="uint8")
    b = R.permute_dims(R.dequantize(q, 0.05, R.const("z"), axis=0), axes=(1, 0))
    c = R.quantize(b, 0.05, R.const("z"), out_dtype="uint8", axis=0)
    d = R.dequantize(c, 0.05, R.const(9, "uint8"))""",
    "a zero point that int8 does not hold": """
    q = R.quantize(x, 0.05, R.const(200, "int32"), out_dtype="int8")
    d = R.dequantize(q, 0.05, R.const(200, "int32"))""",
}


@pytest.mark.parametrize("lines", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_zero_points_mean_the_same(lines: str) -> None:
    text = f"""
@script.function
def main(x: f32[Tensor, 40, 40]) -> f32[Tensor, 40, 24]:{lines}
    return R.matmul(d, R.dequantize(R.const("w"), 0.25, R.const(0, "int8")))
"""
    module = parse(text, {"w": MATRIX, "z": np.arange(40, dtype=np.uint8) * 5})
    x = RNG.standard_normal((40, 40)).astype(np.float32)
    want = np.asarray(interpret(module, "main", [x]))
    after = integers(module)
    assert 'out_dtype="int32"' in print_module(after)
    got = np.asarray(interpret(after, "main", [x]))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-2)


EXACT = {
    "MatMulInteger": "g (T[n, 40] x) => (int32[n, 24] y) { y = MatMulInteger(x, w, z, v) }",
    "ConvInteger": "g (T[1, 5, 9, 9] x) => (int32[1, 16, 9, 9] y)"
    " { y = ConvInteger<pads=[1, 1, 1, 1]>(x, w, z, v) }",
}


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("of", ["uint8", "int8"])
@pytest.mark.parametrize("op", [*EXACT, "MatMulInteger of uint8"])
def test_integer_operators_are_exact(op: str, of: str) -> None:
    weight = TAPS if op == "ConvInteger" else MATRIX
    zeros = {"w": weight, "z": np.array(5, of), "v": np.array(0, np.int8)}
    if op.endswith("of uint8"):
        op, zeros["w"] = "MatMulInteger", (MATRIX.astype(np.int16) + 128).astype(np.uint8)
        zeros["v"] = np.array(99, np.uint8)
    if of == "int8" and op == "ConvInteger":
        pytest.skip("onnxruntime has no ConvInteger of int8")
    proto = model(EXACT[op].replace("T[", f"{of}["), 18, zeros)
    for context in (BYTES, PAIRS):
        assert 'out_dtype="int32"' in print_module(integers(unity.load(proto), context))
    shape = (7, 40) if op == "MatMulInteger" else (1, 5, 9, 9)
    limits = np.iinfo(of)
    x = RNG.integers(limits.min, limits.max + 1, shape).astype(of)
    got = np.asarray(unity.compile(proto, cache=None)(x))
    np.testing.assert_array_equal(got, expected(proto, {"x": x}))


@pytest.mark.rotated(1 / 4)
@BOTH
@pytest.mark.parametrize("point", [0, 23])
@pytest.mark.parametrize("dims", ["1, 5, 9, 9", "n, 5, h, w"])
def test_zero_points_of_run_time_pad_images(dims: str, point: int, context: Context) -> None:
    """Also where weights are sums of two, or wide."""
    text = f"g (uint8[{dims}] x, uint8 z) => (int32[n2, 16, h2, w2] y)"
    text += " { y = ConvInteger<pads=[1, 0, 2, 1]>(x, w, z, v) }"
    proto = model(text, 18, {"w": TAPS, "v": np.array(point, np.int8)})
    assert 'out_dtype="int32"' in print_module(integers(unity.load(proto), context))
    compiled = unity.compile(proto, cache=None)
    for shape in ((1, 5, 9, 9),) if dims[0] == "1" else ((1, 5, 9, 9), (2, 5, 1, 30)):
        x = RNG.integers(0, 256, shape).astype(np.uint8)
        feeds: dict[str, Array] = {"x": x, "z": np.array(131, np.uint8)}
        np.testing.assert_array_equal(np.asarray(compiled(*feeds.values())), expected(proto, feeds))


def test_integers_are_not_left_to_winograd_in_float32() -> None:
    text = """g (uint8[1, 32, 28, 28] x) => (int32[1, 32, 28, 28] y) {
     y = ConvInteger<pads=[1, 1, 1, 1]>(x, w, z, v) }"""
    weight = RNG.integers(-128, 128, (32, 32, 3, 3), dtype=np.int8)
    zeros = {"w": weight, "z": np.array(5, np.uint8), "v": np.array(9, np.int8)}
    after = print_module(integers(unity.load(model(text, 18, zeros))))
    assert after.count('out_dtype="int32"') == 2


def expected(proto: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    """By onnx's own reference: onnxruntime saturates where there are no dot products of bytes."""
    (found,) = ReferenceEvaluator(proto).run(None, feeds)
    return np.asarray(found)


QLINEAR = """g (uint8[1, 5, 9, 9] x) => (uint8[1, 16, 9, 9] y) {
 y = QLinearConv<pads=[1, 1, 1, 1]>(x, sx, zx, w, sw, zw, sy, zy, b) }"""


def test_qlinear_convolution_as_onnx_says() -> None:
    constants: dict[str, Array] = {
        "sx": np.array(0.05, np.float32),
        "zx": np.array(117, np.uint8),
        "w": TAPS,
        "sw": OUTPUTS,
        "zw": np.zeros(16, np.int8),
        "sy": np.array(0.04, np.float32),
        "zy": np.array(101, np.uint8),
        "b": RNG.integers(-9000, 9000, 16, dtype=np.int32),
    }
    proto = model(QLINEAR, 18, constants)
    assert 'out_dtype="int32"' in print_module(integers(unity.load(proto)))
    x = RNG.integers(0, 256, (1, 5, 9, 9)).astype(np.uint8)
    got = np.asarray(unity.compile(proto, cache=None)(x)).astype(np.int32)
    assert np.abs(got - expected(proto, {"x": x}).astype(np.int32)).max() <= 1


def test_qlinear_products_by_scales_of_columns_as_onnx_says() -> None:
    text = """g (uint8[3, 40] x) => (uint8[3, 24] y) {
     y = QLinearMatMul(x, sx, zx, w, sw, zw, sy, zy) }"""
    constants: dict[str, Array] = {
        "sx": np.array(0.05, np.float32),
        "zx": np.array(117, np.uint8),
        "w": MATRIX,
        "sw": COLUMNS,
        "zw": np.arange(-12, 12, dtype=np.int8),
        "sy": np.array(0.8, np.float32),
        "zy": np.array(101, np.uint8),
    }
    proto = model(text, 18, constants)
    assert 'out_dtype="int32"' in print_module(integers(unity.load(proto)))
    x = RNG.integers(0, 256, (3, 40)).astype(np.uint8)
    got = np.asarray(unity.compile(proto, cache=None)(x)).astype(np.int32)
    assert np.abs(got - expected(proto, {"x": x}).astype(np.int32)).max() <= 1


@pytest.mark.parametrize("bits", [256, 512])
def test_narrow_registers_have_products_of_matrices_alone(bits: int) -> None:
    context = replace(BYTES, target=replace(BYTES.target, vector_bits=bits))
    text = IMAGE.format(zero=0, padding=0, strides=1, size=7)
    bias = np.zeros((1, 16, 1, 1), np.float32)
    square = np.ones((16, 16, 1, 1), np.int8)
    constants: dict[str, Array] = {"w": TAPS, "v": square, "outputs": OUTPUTS, "bias": bias}
    text = print_module(integers(parse(text, constants), context))
    assert text.count('out_dtype="int32"') == (2 if bits == 512 else 0)
