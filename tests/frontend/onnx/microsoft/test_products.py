"""Products, activations and normalizations of ``com.microsoft``, as onnxruntime computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .beside import check, reals


@pytest.mark.parametrize(
    ("a", "b", "attributes"),
    [
        ((2, 3, 4), (2, 4, 5), {"alpha": 0.5}),
        ((2, 4, 3), (2, 5, 4), {"transA": 1, "transB": 1}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((3, 4), (4, 5), {}),
    ],
)
def test_fused_matmul(a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any]) -> None:
    check("FusedMatMul", [reals(0, *a), reals(1, *b)], **attributes)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu"])
def test_fused_gemm(activation: str) -> None:
    more: dict[str, Any] = {"activation": activation, "activation_alpha": 0.2}
    operands = [reals(0, 3, 4), reals(1, 5, 4), reals(2, 5)]
    check("FusedGemm", operands, transB=1, alpha=0.5, beta=2.0, **more)


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
def test_activations_with_a_bias(op: str) -> None:
    check(op, [reals(0, 2, 3, 8) * 3, reals(1, 8)])


@pytest.mark.parametrize("op", ["FastGelu", "Gelu", "QuickGelu"])
def test_activations(op: str) -> None:
    check(op, [reals(0, 2, 3, 8) * 3])


@pytest.mark.parametrize("activation", ["Relu", "HardSigmoid", "Clip"])
def test_fused_conv(activation: str) -> None:
    params = {"HardSigmoid": [0.2, 0.5], "Clip": [-0.5, 0.5]}.get(activation)
    more = {"activation_params": params} if params else {}
    operands = [reals(0, 1, 4, 6, 6), reals(1, 4, 4, 3, 3), reals(2, 4), reals(3, 1, 4, 6, 6)]
    attributes: dict[str, Any] = {"pads": [1, 1, 1, 1], "activation": activation, **more}
    check("FusedConv", operands, rtol=1e-4, **attributes)


@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (8, 32)])
@pytest.mark.parametrize("points", ["none", "packed"])
@pytest.mark.parametrize("depth", [64, 48])
def test_products_by_weights_in_blocks(bits: int, block: int, points: str, depth: int) -> None:
    columns, blocks = 24, -(-depth // block)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = (rng.random((columns, blocks)) * 0.1 + 0.01).astype(np.float32)
    zero = rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    operands = [reals(0, 3, depth), weight, scales, zero if points == "packed" else None]
    check("MatMulNBits", operands, rtol=1e-4, K=depth, N=columns, bits=bits, block_size=block)


@pytest.mark.parametrize("given", ["all", "no beta", "no bias"])
def test_normalizations_of_sums(given: str) -> None:
    beta = None if given == "no beta" else reals(3, 8)
    bias = None if given == "no bias" else reals(4, 8)
    operands = [reals(0, 2, 3, 8), reals(1, 2, 3, 8), reals(2, 8), beta, bias]
    check("SkipLayerNormalization", operands, 4, epsilon=1e-5, compared=[0, 3])


def test_simplified_normalizations_of_sums() -> None:
    operands = [reals(0, 2, 3, 8), reals(1, 2, 3, 8), reals(2, 8), reals(4, 8)]
    check("SkipSimplifiedLayerNormalization", operands, 4, epsilon=1e-5, compared=[0, 3])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("segmented", [False, True])
def test_embeddings(masked: bool, segmented: bool) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 9, (2, 5)).astype(np.int32)
    segments = rng.integers(0, 2, (2, 5)).astype(np.int32) if segmented else None
    tables = [reals(1, 9, 8), reals(2, 6, 8), reals(3, 2, 8) if segmented else None]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if masked else None
    operands = [ids, segments, *tables, reals(4, 8), reals(5, 8), mask]
    check("EmbedLayerNormalization", operands, 2, epsilon=1e-6)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_normalizations_of_small_numbers_unless_said_otherwise(op: str) -> None:
    x = reals(0, 2, 3, 8) * np.float32(1e-4)
    check(op, [x, x, reals(1, 8)])
