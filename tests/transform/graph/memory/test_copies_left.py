"""What real programs still copy: blocks of known networks, their kernels that only move values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.transform.graph.memory.moving import kernels, moving
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context

Floats = npt.NDArray[np.float32]
_CPU = Context().target
TARGET = replace(_CPU, vector_bits=512, vector_registers=32, features=("avx512f", "fma"))


def program(lines: str, **shapes: tuple[int, ...]) -> IRModule:
    """A function of ``x`` with random constants of these shapes; it returns ``out``."""
    rng = np.random.default_rng(0)
    given = ", ".join(map(str, shapes.pop("x")))
    constants: dict[str, Floats] = {
        k: rng.standard_normal(v, np.float32) * np.float32(0.125) for k, v in shapes.items()
    }
    for name in shapes:
        lines = lines.replace(f"${name}", f'R.const("{name}")')
    text = f"""
@script.function
def main(x: f32[Tensor, {given}]) -> f32[Tensor, ...]:
    with R.dataflow():
{lines}
    return out
"""
    return parse(text, constants)


UNET = program(
    """
        a = R.nn.relu(R.nn.conv2d(x, $a, padding=1))
        b = R.nn.relu(R.nn.conv2d(R.nn.max_pool2d(a, 2, 2), $b, padding=1))
        up = R.repeat(R.repeat(b, 2, axis=2), 2, axis=3)
        z = R.nn.relu(R.nn.conv2d(R.concat((up, a), axis=1), $c))
        out = R.mean(z, axis=(2, 3), keepdims=True)""",
    x=(1, 3, 32, 32),
    a=(32, 3, 3, 3),
    b=(64, 32, 3, 3),
    c=(32, 96, 1, 1),
)
"""The skip is written where it is concatenated; what repeats pixels writes beside it."""

CSP = program(
    """
        y = R.nn.relu(R.nn.conv2d(x, $stem, strides=2))
        z = R.nn.relu(R.nn.conv2d(y, $wide))
        both = R.split(z, 2, axis=1)
        p = both[0]
        q = both[1]
        r = R.add(q, R.nn.relu(R.nn.conv2d(q, $in, padding=1)))
        s = R.add(r, R.nn.relu(R.nn.conv2d(r, $in, padding=1)))
        joined = R.nn.conv2d(R.concat((p, q, r, s), axis=1), $last)
        out = R.mean(joined, axis=(2, 3), keepdims=True)""",
    x=(1, 32, 33, 33),
    stem=(128, 32, 3, 3),
    wide=(64, 128, 1, 1),
    **{"in": (32, 32, 3, 3)},
    last=(64, 128, 1, 1),
)
"""Two parts of one tensor lie side by side in the concatenation: so does the tensor."""

SHORTCUT = program(
    """
        y = R.nn.max_pool2d(R.nn.relu(R.nn.conv2d(x, $stem, padding=1)), 2, 2)
        a = R.nn.conv2d(y, $short)
        b = R.nn.relu(R.nn.conv2d(y, $narrow))
        c = R.nn.relu(R.nn.conv2d(b, $in, padding=1))
        z = R.nn.relu(R.add(R.nn.conv2d(c, $last), a))
        out = R.mean(z, axis=(2, 3), keepdims=True)""",
    x=(1, 3, 56, 56),
    stem=(64, 3, 3, 3),
    short=(256, 64, 1, 1),
    narrow=(64, 64, 1, 1),
    **{"in": (64, 64, 3, 3)},
    last=(256, 64, 1, 1),
)
"""The first block of ResNet-50: its shortcut and its first convolution are one."""

RESIZED = program(
    """
        a = R.nn.relu(R.nn.conv2d(x, $a, padding=1))
        lower = R.multiply(R.take(a, R.const([0, 0, 1, 2], "int64"), axis=2), $part)
        upper = R.multiply(R.take(a, R.const([1, 3, 5, 7], "int64"), axis=2), $rest)
        b = R.nn.conv2d(R.add(lower, upper), $b, padding=1)
        out = R.mean(R.nn.relu(b), axis=(2, 3), keepdims=True)""",
    x=(1, 3, 8, 32),
    a=(32, 3, 3, 3),
    b=(32, 32, 3, 3),
    part=(4, 1),
    rest=(4, 1),
)
"""An image resized by weighted lines stays in blocks."""

QKV = program(
    """
        y = R.matmul(x, $w)
        three = R.split(y, 3, axis=-1)
        q = R.permute_dims(R.reshape(three[0], (2, 16, 4, 8)), (0, 2, 1, 3))
        k = R.permute_dims(R.reshape(three[1], (2, 16, 4, 8)), (0, 2, 3, 1))
        v = R.permute_dims(R.reshape(three[2], (2, 16, 4, 8)), (0, 2, 1, 3))
        s = R.nn.softmax(R.multiply(R.matmul(q, k), 0.25), axis=-1)
        o = R.reshape(R.permute_dims(R.matmul(s, v), (0, 2, 1, 3)), (2, 16, 32))
        out = R.matmul(o, $o)""",
    x=(2, 16, 32),
    w=(32, 96),
    o=(32, 32),
)

GATED = program(
    """
        y = R.matmul(x, $w)
        three = R.split(y, 3, axis=-1)
        q = R.reshape(three[0], (2, 16, 4, 8))
        k = R.reshape(three[1], (2, 16, 4, 8))
        v = R.reshape(three[2], (2, 16, 4, 8))
        out = R.permute_dims(R.add(R.multiply(q, R.sigmoid(k)), v), (0, 2, 1, 3))""",
    x=(2, 16, 32),
    w=(32, 96),
)
"""Parts that are used elementwise, viewed as heads: the slices join what uses them."""


@pytest.mark.parametrize(
    ("module", "count", "moved"),
    [
        (UNET, 6, ["fused_repeat_repeat"]),
        (CSP, 7, []),
        (SHORTCUT, 6, []),
        (QKV, 3, []),
        (GATED, 2, []),
        (RESIZED, 4, []),
    ],
    ids=["unet", "csp", "shortcut", "qkv", "gated", "resized"],
)
def test_what_is_left(module: IRModule, count: int, moved: list[str]) -> None:
    found = kernels(module, TARGET)
    assert [k for k in moving(module, TARGET) if k != "permute_dims"] == moved  # of the input
    assert len(found) == count, found


@pytest.mark.rotated(3)
@pytest.mark.parametrize(
    "module",
    [UNET, CSP, SHORTCUT, QKV, GATED, RESIZED],
    ids=["unet", "csp", "shortcut", "qkv", "gated", "resized"],
)
def test_the_numbers(module: IRModule) -> None:
    (param,) = module.graph_functions()["main"].params
    shape = getattr(param.type, "shape", ())
    x = np.random.default_rng(2).standard_normal(shape, np.float32)
    want = np.asarray(interpret(module, "main", [x]))
    got = unity.compile(module, threads=2)(x)
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
