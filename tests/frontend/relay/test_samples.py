"""Relay files of others (Calyx's, with data): all load, and give what numpy says by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.frontend.relay.numpy_layers import convolution, pooling
from unity.frontend.relay import from_relay
from unity.interpreter import interpret
from unity.ir.graph import Function
from unity.ir.types import TensorType
from unity.ir.well_formed.verify import verify

FILE = Path(__file__).with_name("calyx.json")
"""The programs, by their files' names, and their inputs' numbers, flat."""
Tensor = npt.NDArray[Any]
TWO, ONE, NONE = (2, 2), (1, 1), (0, 0, 0, 0)


@cache
def samples() -> dict[str, Any]:
    """The programs, and the data of those that have some."""
    found = json.loads(FILE.read_text())
    assert isinstance(found, dict)
    return found


def _flat(x: Tensor) -> Tensor:
    return x.reshape(len(x), -1)


def _mean(x: Tensor) -> Tensor:
    return np.asarray(np.trunc(x.mean(-1)))


def _lrn(x: Tensor) -> Tensor:
    """Over five channels, of which there are but three."""
    return np.asarray(x / (1 + 1e-4 / 5 * (x**2).sum(1, keepdims=True)) ** 0.75)


def _softmax(x: Tensor) -> Tensor:
    return np.asarray(np.exp(x) / np.exp(x).sum(-1, keepdims=True))


EXPECTED: dict[str, Callable[..., Tensor]] = {
    "avg_pool2d": lambda x: pooling(x, TWO, TWO, NONE, ONE, _mean),
    "batch_flatten": _flat,
    "batch_flatten-same-dimensions": _flat,
    "batch_matmul": lambda a, b: a @ b.transpose(0, 2, 1),
    "bias_add": np.add,
    "broadcast": np.add,
    "clip": lambda x: np.clip(x, 2, 6),
    "concatenate": lambda x, y: np.concatenate([x, y], 2),
    "constant-multiply": lambda x: x * 3,
    "constant-multiply-fixed-point": lambda x: x * 2.5,
    "conv2d": lambda x, w: convolution(x, w, ONE, NONE, ONE),
    "conv2d_new_padding": lambda x, w: convolution(x, w, TWO, (2, 2, 2, 2), ONE),
    "conv2d_padding": lambda x, w: convolution(x, w, ONE, (1, 1, 1, 1), ONE),
    "dense": lambda x, w: x @ w.T,
    "global_avg_pool2d": lambda x: np.trunc(x.mean((2, 3), keepdims=True)),
    "lrn": _lrn,
    "max_pool2d": lambda x: pooling(x, TWO, TWO, NONE, ONE, lambda w: w.max(-1)),
    "negative": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "reshape": lambda x: x.reshape(1, 8),
    "reshape-no-infer": lambda x: x.reshape(2, 4),
    "softmax": _softmax,
    "sqrt": lambda x: np.floor(np.sqrt(x)),
    "tensor_add": np.add,
}


def test_all_samples_load() -> None:
    assert len(samples()["programs"]) == 40
    for program in samples()["programs"].values():
        verify(from_relay(program))


def test_samples_with_data_give_the_right_values() -> None:
    prefix = "tests_correctness_relay_"
    assert {f"{prefix}{name}" for name in EXPECTED} == samples()["data"].keys()
    for name, given in samples()["data"].items():
        module = from_relay(samples()["programs"][name])
        main = module["main"]
        assert isinstance(main, Function)
        inputs: list[Tensor] = []
        for param in main.params:
            assert isinstance(param.type, TensorType)
            assert param.type.dtype is not None
            values = np.asarray(given[param.name], param.type.dtype.numpy)
            assert isinstance(param.type.shape, tuple)
            inputs.append(values.reshape([int(d) for d in param.type.shape if isinstance(d, int)]))
        wanted = EXPECTED[name.removeprefix(prefix)](*inputs)
        found = interpret(module, "main", inputs)
        assert isinstance(found, np.ndarray)
        assert found.shape == wanted.shape, name
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=1e-6, err_msg=name)
