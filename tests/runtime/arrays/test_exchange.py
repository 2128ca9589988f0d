"""Tensors of torch that native entries take themselves, and those left to the slow way."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pytest

import unity
from unity.runtime.arrays import exchange
from unity.runtime.executable import Executable
from unity.script import parse

pytestmark = pytest.mark.torch

SOURCE = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 4], k: i64[Tensor, n]) -> tuple[f32[Tensor, n, 4], i64[Tensor, n]]:
    return (R.multiply(x, R.const(2.0, "float32")), R.add(k, k))
"""


@cache
def executable() -> Executable:
    return unity.compile(parse(SOURCE))


@cache
def one() -> Executable:
    text = "n = dim('n')\n@script.function\ndef main(x: f32[Tensor, n]) -> f32[Tensor, n]:\n"
    return unity.compile(parse(f"{text}    return R.add(x, x)\n"))


def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What goes the slow way from here on."""
    from unity.runtime import call
    from unity.runtime.arrays.accept import accept

    seen: list[object] = []

    def watched(value: object, wanted: str | None, where: str) -> object:
        seen.append(value)
        return accept(value, wanted, where)

    monkeypatch.setattr(call, "accept", watched)
    return seen


def test_the_second_call_needs_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    x, k = torch.rand(3, 4), torch.arange(3)
    executable()(x, k)
    seen = slow_calls(monkeypatch)
    for given in ((x, k), (x[1:], k[1:]), (x, k.numpy()), (x.numpy(), k)):
        doubled, sums = executable()(*given)
        assert isinstance(doubled, torch.Tensor)
        assert isinstance(sums, torch.Tensor)
        assert torch.equal(doubled, torch.as_tensor(given[0]) * 2)
        assert torch.equal(sums, torch.as_tensor(given[1]) * 2)
    assert torch.equal(one()(torch.nn.Parameter(x[0])), 2 * x[0])
    assert seen[1:] == []  # a Parameter is a type of its own, once
    assert executable()(x.numpy(), k.numpy())[0].__class__ is np.ndarray


def test_what_is_unusual_goes_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    one()(torch.ones(2))
    seen = slow_calls(monkeypatch)
    strided = torch.arange(10.0)[::2]
    assert torch.equal(one()(strided), 2 * strided)
    assert torch.equal(one()(torch.ones(())[None].expand(3)), torch.full((3,), 2.0))
    assert torch.equal(one()(torch.ones(0)), torch.ones(0))
    assert len(seen) == 3


def test_what_cannot_be_taken_is_refused_by_name() -> None:
    import torch

    one()(torch.ones(2))
    negative = torch.complex(torch.ones(1), torch.ones(1)).conj().imag
    assert negative.is_neg()
    for wrong, message in (
        (negative, "negative bit"),
        (torch.ones(2, device="meta"), "input 'x'"),
        (torch.eye(2).to_sparse(), "input 'x'"),
        (torch.ones(2, dtype=torch.float64), "expected dtype float32, got float64"),
        (torch.ones(2, 2), "input 'x'"),
    ):
        with pytest.raises(unity.UnityError, match=message):
            one()(wrong)
    with pytest.raises(unity.UnityError, match="symbol n is 2 here but 3"):
        executable()(torch.ones(3, 4), torch.arange(2))


def test_nothing_is_kept() -> None:
    import torch

    x, k = torch.rand(3, 4), torch.arange(3)
    executable()(x, k)
    counted = (x, k, torch.Tensor, np.ndarray, np.dtype(np.float32), np.dtype(np.int64), False)
    before = [sys.getrefcount(c) for c in counted]
    for _ in range(500):
        executable()(x, k)
        with pytest.raises(unity.UnityError):
            executable()(x, x)
    after = [sys.getrefcount(c) for c in counted]
    assert [a - b for a, b in zip(after, before, strict=True) if abs(a - b) > 50] == []


def test_a_result_outlives_its_executable() -> None:
    import torch

    exe = unity.compile(parse(SOURCE))
    x = torch.rand(500, 4)
    exe(x, torch.arange(500))
    doubled, _ = exe(x, torch.arange(500))
    del exe
    assert torch.equal(doubled, x * 2)


def test_bfloat16_comes_back_as_such() -> None:
    import torch

    text = "@script.function\ndef main(x: bf16[Tensor, 4]) -> bf16[Tensor, 4]:\n"
    exe = unity.compile(parse(f"{text}    return R.add(x, x)\n"))
    x = torch.arange(4, dtype=torch.bfloat16)
    for _ in range(3):
        assert torch.equal(exe(x), 2 * x)


def test_types_without_the_protocol_are_not_remembered() -> None:
    class Other:
        """No tensor."""

    before = list(exchange.TABLE)
    exchange.remember(Other, None)
    assert list(exchange.TABLE) == before
