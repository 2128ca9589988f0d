"""What an executable offers: kinds of arrays, named runs, threads, reports."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.runtime.bytecode.program_json import from_json, to_json
from unity.runtime.executable import Executable
from unity.runtime.vm import Event
from unity.script import parse
from unity.transform.graph import CountNonzero

SOURCE = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, n]) -> f32[Tensor, n]:
    a = R.add(x, y)
    s = R.sum(a, axis=(0,), keepdims=True)
    return R.multiply(a, s)
"""


@cache
def executable() -> Executable:
    return unity.compile(parse(SOURCE))


def expected(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray((x + x) * (x + x).sum(), np.float32)


X = np.arange(5, dtype=np.float32)


def test_named_positional_and_mixed() -> None:
    exe = executable()
    for result in (exe(X, X), exe(x=X, y=X), exe(X, y=X), exe["main"](X, X), exe["main"](y=X, x=X)):
        np.testing.assert_allclose(np.asarray(result), expected(X))
    (named,) = exe.run({"y": X, "x": X}).values()
    np.testing.assert_allclose(named, expected(X))


TWO = """
@script.function(attrs={"input_names": ("in/x", "y"), "output_names": ("sum:0", "difference")})
def main(x: f32[Tensor, 5], second: f32[Tensor, 5]) -> tuple[f32[Tensor, 5], f32[Tensor, 5]]:
    return (R.add(x, second), R.subtract(x, second))
"""


@pytest.mark.parametrize(
    "inputs",
    [
        {"in/x": X, "y": 2 * X},
        {"y": 2 * X, "in/x": X},
        {"x": X, "second": 2 * X},  # the parameters' names
        {"x": X, "y": 2 * X},
        MappingProxyType({"in/x": X, "y": 2 * X}),
        OrderedDict({"y": 2 * X, "in/x": X}),
    ],
)
def test_run_by_the_models_names(inputs: Mapping[str, object]) -> None:
    exe = unity.compile(parse(TWO))
    result = exe.run(inputs)
    assert list(result) == ["sum:0", "difference"]
    np.testing.assert_array_equal(result["sum:0"], 3 * X)
    np.testing.assert_array_equal(result["difference"], -X)


def test_run_refuses_other_names() -> None:
    exe, seen = unity.compile(parse(TWO)), defaultdict[str, object](lambda: X, {"in/x": X})
    with pytest.raises(unity.UnityError, match="missing second"):
        exe.run(seen)
    assert list(seen) == ["in/x"]
    with pytest.raises(unity.UnityError, match="there is no 'z'"):
        exe.run({"in/x": X, "z": X})
    not_a_dict: Any = [X, X]
    with pytest.raises(unity.UnityError, match="run takes a dict"):
        exe.run(not_a_dict)


@pytest.mark.torch
def test_run_gives_numpy_whatever_it_was_given() -> None:
    import torch

    result = unity.compile(parse(TWO)).run({"in/x": torch.from_numpy(X), "y": 2 * X})
    assert [type(r) for r in result.values()] == [np.ndarray, np.ndarray]
    (single,) = executable().run({"x": torch.from_numpy(X), "y": X}).items()
    assert single[0] == "output0"
    assert type(single[1]) is np.ndarray


def test_one_executable_serves_every_length() -> None:
    for n in (0, 1, 2, 15, 16, 17, 100, 1000, 5, 40_000):
        x = np.full(n, 0.01, np.float32)
        np.testing.assert_allclose(np.asarray(executable()(x, x)), expected(x), rtol=1e-4)


@pytest.mark.torch
def test_torch_in_torch_out() -> None:
    import torch

    result = executable()(torch.from_numpy(X), X)
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(result.numpy(), expected(X))
    weights = torch.from_numpy(X.copy()).requires_grad_()
    np.testing.assert_allclose(executable()(weights, weights), expected(X))
    strided = torch.arange(10, dtype=torch.float32)[::2]
    np.testing.assert_allclose(executable()(strided, strided), expected(strided.numpy()))


@pytest.mark.torch
def test_torch_bfloat16_goes_in_and_out() -> None:
    import torch

    text = SOURCE.replace("f32", "bf16").replace(
        "R.sum(a, axis=(0,), keepdims=True)", "R.add(a, x)"
    )
    exe = unity.compile(parse(text))
    x = torch.arange(4, dtype=torch.bfloat16)
    result = exe(x, x)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.bfloat16
    np.testing.assert_allclose(result.float().numpy(), [0, 6, 24, 54])


def test_eight_threads_at_once() -> None:
    exe, wrong = executable(), list[int]()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            x = rng.uniform(0, 1, int(rng.integers(0, 3000))).astype(np.float32)
            if not np.allclose(np.asarray(exe(x, x)), expected(x), rtol=1e-5):
                wrong.append(x.size)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_reports() -> None:
    exe = executable()
    assert exe.signature == "main(x: float32[n], y: float32[n]) -> float32[n]"
    assert list(exe.symbols) == ["n"]
    assert exe.native() == {"main": "native"}
    assert len(exe.benchmark(X, X, repeat=5).seconds) == 5
    profile = exe.profile(X, X)
    assert set(exe.kernels) <= {row.what for row in profile.rows}
    assert exe.kernels[0] in str(profile)
    assert str(profile).endswith("kernels as native code; the function: native")
    assert exe.peak_bytes(n=1000) - exe.peak_bytes(n=0) >= 4000
    with pytest.raises(unity.UnityError, match="values for n"):
        exe.peak_bytes()
    assert "main(x: float32[n]" in repr(exe)


def test_a_profile_times_kernels_and_leaves_their_tensors_alone() -> None:
    """A loop's state is written over by its kernels: calling them again must not be seen."""
    exe = unity.compile(
        parse("""
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    i = R.const(0)
    y = x
    while R.less(i, 5):
        i = R.add(i, 1)
        y = R.add(y, R.astype(R.sum(R.nonzero(y)), dtype="float32"))
    return y
"""),
        pipeline=unity.pipeline().without(CountNonzero),
    )
    x = np.ones(4, np.float32)
    seen: list[Event] = []
    exe.trace(seen.append, x)
    profile = exe.profile(x)
    counts = {r.what: r.calls for r in profile.rows}
    assert counts["CallHost"] == 5
    assert sum(r.calls for r in profile.rows) == len(seen)
    kernels = [r.seconds for r in profile.rows if r.what in exe.kernels]
    assert all(seconds > 0 for seconds in kernels)
    assert "bytecode: it calls Python (op:nonzero)" in str(profile)
    assert profile.whole is not None


def test_texts_of_what_was_compiled() -> None:
    exe = executable()
    kernel = exe.kernels[0]
    assert f"def {kernel}(" in exe.ir()
    assert "def main(" not in exe.ir(kernel)
    assert f"@{kernel}(" in exe.llvm(kernel)
    assert "unity_run_0" in exe.llvm()
    assert kernel in exe.asm(kernel)
    with pytest.raises(unity.UnityError, match="no kernel 'nothing'"):
        exe.ir("nothing")


def test_a_trace_sees_each_instruction_and_its_values() -> None:
    events: list[Event] = []
    result = executable().trace(events.append, X, X)
    np.testing.assert_allclose(np.asarray(result), expected(X))
    last = [e for e in events if type(e.instruction).__name__ == "CallKernel"][-1]
    arrays = [v for v in last.values if isinstance(v, np.ndarray) and v.shape == X.shape]
    assert any(np.allclose(v, expected(X)) for v in arrays)


def test_the_program_survives_json() -> None:
    program = executable().program
    assert from_json(to_json(program)) == program
    with pytest.raises(unity.UnityError, match="not a Unity program"):
        from_json('{"is": "Nonsense"}')
    with pytest.raises(unity.UnityError, match="not a Unity program"):
        from_json("[")
    newer = to_json(program).replace('"version": 1', '"version": 2')
    with pytest.raises(unity.UnityError, match="version 2"):
        from_json(newer)


def test_many_executables_come_and_go() -> None:
    for _ in range(20):
        exe = unity.compile(parse(SOURCE))
        call = exe["main"]
        del exe
        np.testing.assert_allclose(np.asarray(call(X, X)), expected(X))
