"""Attention in the forms of ``com.microsoft``, as onnxruntime computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conformance.suite import by_interpreter
from unity.frontend.onnx import from_onnx

from .beside import Array, check, node_model, reals, scalar, whole

B, S, N, H = 2, 5, 3, 4
D = N * H
HEADS = {"num_heads": N}
MASKS: dict[str | None, Array] = {
    "lengths": np.array([3, 5], np.int32),
    "keys": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
    "pairs": np.tril(np.ones((B, S, S), np.int32)),
}


@pytest.mark.parametrize("mask", [None, *MASKS])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_by_one_product(mask: str | None, unidirectional: int) -> None:
    operands: list[Array | None] = [
        reals(0, B, S, 6),
        reals(1, 6, 3 * D),
        reals(2, 3 * D),
        MASKS.get(mask),
    ]
    check("Attention", operands, num_heads=N, unidirectional=unidirectional)


def test_attention_behind_a_cache() -> None:
    operands = [
        reals(0, B, S, 6),
        reals(1, 6, 3 * D),
        reals(2, 3 * D),
        None,
        reals(3, 2, B, N, 2, H),
    ]
    check("Attention", operands, 2, num_heads=N, unidirectional=1)


def test_attention_with_what_is_added_and_other_sizes() -> None:
    operands: list[Array | None] = [
        reals(0, B, S, 6),
        reals(1, 6, 2 * D + 6),
        reals(2, 2 * D + 6),
        None,
        None,
    ]
    operands.append(reals(3, B, N, S, S))
    check("Attention", operands, num_heads=N, qkv_hidden_sizes=[D, D, 6], scale=0.3)


@pytest.mark.parametrize("mask", [None, "lengths", "keys"])
@pytest.mark.parametrize("biased", [False, True])
def test_attention_of_heads(mask: str | None, biased: bool) -> None:
    operands: list[Array | None] = [reals(k, B, S, D) for k in range(3)]
    operands += [reals(3, 3 * D) if biased else None, MASKS.get(mask)]
    check("MultiHeadAttention", operands, num_heads=N)


def test_attention_of_heads_behind_a_cache() -> None:
    caches = [reals(k, B, N, 2, H) for k in (5, 6)]
    operands = [
        *(reals(k, B, S, D) for k in range(3)),
        None,
        None,
        reals(4, B, N, S, S + 2),
        *caches,
    ]
    check("MultiHeadAttention", operands, 3, num_heads=N)


def test_packed_operands_are_parted() -> None:
    """onnxruntime computes them so on graphics processors alone."""
    all_three, rows, pair = reals(0, B, S, N, 3, H), reals(1, B, S, D), reals(2, B, S, N, 2, H)
    apart = [all_three[:, :, :, k].reshape(B, S, D) for k in range(3)]
    for packed, plain in (
        ([all_three], apart),
        ([rows, pair], [rows, *(pair[:, :, :, k].reshape(B, S, D) for k in range(2))]),
    ):
        found = [
            by_interpreter(from_onnx(node_model("MultiHeadAttention", x, [True], HEADS)), x)
            for x in (packed, plain)
        ]
        np.testing.assert_array_equal(np.asarray(found[0][0]), np.asarray(found[1][0]))


def test_keys_that_have_heads() -> None:
    operands = [reals(0, B, S, D), *(reals(k, B, N, 7, H) for k in (1, 2))]
    check("MultiHeadAttention", operands, num_heads=N)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotation(interleaved: int, offset: bool, rank: int) -> None:
    x = reals(0, B, S, D) if rank == 3 else reals(0, B, N, S, H)
    at = np.array([2]) if offset else np.random.default_rng(0).integers(0, 9, (B, S))
    angles = np.linspace(0, 3, 9 * H // 2, dtype=np.float32).reshape(9, H // 2)
    check("RotaryEmbedding", [x, at, np.cos(angles), np.sin(angles)], interleaved=interleaved)


def grouped(rows: int, past: int, total: int, lengths: list[int]) -> list[Array | None]:
    cache = [reals(k, B, 2, past, 16) if past else None for k in (3, 4)]
    return [
        reals(0, B, rows, 4 * 16),
        reals(1, B, rows, 2 * 16),
        reals(2, B, rows, 2 * 16),
        *cache,
        np.array(lengths, np.int32),
        np.array(total, np.int32),
    ]


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("window", [-1, 3])
def test_groups_of_queries_behind_caches(rotary: int, window: int) -> None:
    operands = grouped(1, 6, 7, [6, 6])
    angles = np.linspace(0, 3, 16 * 8, dtype=np.float32).reshape(16, 8)
    if rotary:
        operands += [np.cos(angles), np.sin(angles)]
    sizes: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "local_window_size": window}
    check("GroupQueryAttention", operands, 3, rtol=1e-4, do_rotary=rotary, **sizes)


def test_groups_of_queries_of_a_prompt() -> None:
    operands = grouped(5, 0, 5, [4, 4])
    check("GroupQueryAttention", operands, 3, rtol=1e-4, num_heads=4, kv_num_heads=2, softcap=20.0)


def test_groups_of_queries_in_one_operand() -> None:
    packed = reals(0, B, 1, (4 + 2 * 2) * 16)
    operands = [packed, None, None, *grouped(1, 6, 7, [6, 6])[3:]]
    check("GroupQueryAttention", operands, 3, rtol=1e-4, num_heads=4, kv_num_heads=2)


@pytest.mark.parametrize("mask", [None, "lengths", "keys"])
def test_attention_of_integers(mask: str | None) -> None:
    operands = [
        whole(0, "uint8", B, S, 8), whole(1, "int8", 8, 3 * D), reals(2, 3 * D), scalar(0.01),
        scalar(0.02), MASKS.get(mask), scalar(120, "uint8"), scalar(3, "int8"),
    ]  # fmt: skip
    check("QAttention", operands, rtol=1e-4, num_heads=N)
