"""Arguments of the Python interface that make no sense are refused by an error of ours."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.script import Buffer, R, T, Tensor, dim, f32
from unity.transform import Context, Pass
from unity.transform.graph import FuseOps
from unity.transform.schedule import Schedule

n = dim("n")


@script.function
def double(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    return R.add(x, x)


@script.prim_func
def twice(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    for i in range(4):
        with T.block("twice"):
            vi = T.axis.spatial(4, i)
            y[vi] = x[vi] * 2.0


@cache
def executable() -> unity.Executable:
    return unity.compile(double)


@dataclass(frozen=True, slots=True)
class Lost(Pass):
    def __call__(self, module: unity.IRModule, ctx: Context) -> unity.IRModule:
        return cast("unity.IRModule", None)


def test_a_copy_of_an_executable_is_itself() -> None:
    assert copy.copy(executable()) is executable()
    assert copy.deepcopy({"exe": executable()})["exe"] is executable()


def test_the_target_that_the_hint_describes_compiles() -> None:
    with pytest.raises(UnityError) as caught:
        unity.compile(double, "avx2")
    described = str(caught.value.hint).partition("described: ")[2]
    target = eval(described, {"unity": unity})
    assert "ymm" in unity.compile(double, target).asm()


TARGETS: dict[str, tuple[Callable[[], unity.Target], str]] = {
    "an unknown cpu": (lambda: machine(cpu="haswel"), "(?s)no cpu 'haswel'.*haswell"),
    "an unknown feature": (lambda: machine(features=("+avx2",)), r"(?s)no feature '\+avx2'.*avx2"),
    "an unknown triple": (lambda: machine(triple="foo-bar"), "(?s)no machine 'foo-bar'.*x86_64-"),
    "no triple": (lambda: machine(triple=""), "no machine ''"),
    "odd vectors": (lambda: machine(vector_bits=100), "(?s)vector_bits=100.*512"),
    "no registers": (lambda: machine(vector_registers=0), "vector_registers=0"),
    "no threads": (lambda: machine(threads=-1), "threads=-1"),
}


def machine(**changed: Any) -> unity.Target:
    target = unity.Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx", "avx2"), 256)
    return replace(target, **changed)


@pytest.mark.parametrize("case", TARGETS)
def test_a_machine_that_there_is_not_is_refused(
    case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target, message = TARGETS[case]
    with pytest.raises(UnityError, match=message):
        unity.compile(double, target())
    assert not capfd.readouterr().err


def test_a_cpu_without_64_bits_does_not_end_the_process() -> None:
    assert unity.compile(double, machine(cpu="i386", features=("sse2",), vector_bits=128)).asm()


@pytest.mark.parametrize("name", ["main.py", "libm.so", "m.pt", "w.safetensors"])
def test_what_is_no_model_is_told_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("text")
    for read in (unity.load, unity.compile):
        with pytest.raises(UnityError, match="not an ONNX model"):
            read(tmp_path / name)


def test_a_file_that_only_looks_like_an_executable(tmp_path: Path) -> None:
    path = tmp_path / "junk.unity"
    path.write_bytes(b"junk" * 100)
    for read in (unity.load, unity.compile):
        with pytest.raises(UnityError, match=r"junk\.unity is no executable.*400 bytes"):
            read(path)


X = np.ones((3, 4), np.float32)
MISTYPED = """
@script.function
def main(x: f32[Tensor, 3]) -> f32[Tensor, 4]:
    return R.exp(x)
"""
SCALED = """
@script.prim_func
def scaled(x: f32[Buffer, 4], a: T.scalar("float32"), y: f32[Buffer, 4]) -> None:
    for i in range(4):
        y[i] = x[i] * a
"""
ANY = cast("Any", unity)
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "a kernel of numbers": (
        lambda: unity.compile(script.parse(SCALED)),
        r"(?s)takes the number a.*decorated",
    ),
    "a bare kernel": (
        lambda: ANY.compile(twice.module().prim_funcs()["twice"]),
        r"unity\.IRModule\(",
    ),
    "a schedule": (
        lambda: ANY.compile(Schedule(twice.module().prim_funcs()["twice"])),
        r"schedule\.kernel\(\)",
    ),
    "pickled": (lambda: pickle.dumps(executable()), r"(?s)can't be pickled.*exe\.save"),
    "a level as target": (lambda: unity.compile(double, "avx2"), r"unity\.Target\(\"cpu\""),
    "nothing compiled": (lambda: ANY.compile(None), "NoneType"),
    "no threads": (lambda: unity.compile(double, threads=0), "threads=0"),
    "dynamic list": (lambda: ANY.compile(double, dynamic=["x"]), "dict"),
    "dynamic shape": (lambda: ANY.compile(double, dynamic={"x": [8]}), "dict"),
    "negative size": (lambda: unity.compile(double, dynamic={"x": {0: -8}}), "-8"),
    "negative symbol": (lambda: unity.compile(double, dynamic={"n": -8}), "-8"),
    "resolve number": (lambda: ANY.compile(double, resolve=3), r"(?s)resolve=3.*choose\(site, "),
    "resolve no pairs": (lambda: ANY.compile(double, resolve=[3]), "has 3, which is no pair"),
    "trace nowhere": (
        lambda: unity.compile(double, trace="/dev/null/trace"),
        "the trace can't be written: /dev",
    ),
    "pipeline by name": (
        lambda: ANY.compile(double, pipeline="cpu"),
        r"(?s)expected a Pipeline or None, got 'cpu'.*unity\.pipeline",
    ),
    "trace is a file": (lambda: unity.compile(double, trace=__file__), r"\.py' is a file"),
    "nothing passed on": (
        lambda: unity.compile(double, pipeline=unity.pipeline().insert_before(FuseOps, Lost())),
        "the pass Lost gave None, which is no module",
    ),
    "pipeline": (lambda: ANY.pipeline("gpu"), "gpu"),
    "run by position": (lambda: cast("Any", executable()).run((X,)), "tuple"),
    "a cache without a name": (lambda: unity.compile(double, cache=""), "cache=''"),
    "a cache that is none": (lambda: ANY.compile(double, cache=3), "argument 18 'cache': expected"),
    "saved under no suffix": (
        lambda: executable().save("model"),
        r"(?s)called NAME\.unity.*'model'.*call it model\.unity",
    ),
    "saved under another suffix": (lambda: executable().save("m.bin"), r"call it m\.bin\.unity"),
    "no repeats": (lambda: executable().benchmark(X, repeat=0), "repeat=0"),
    "a type": (
        lambda: unity.compile(script.parse(MISTYPED)),
        r"float32\(3,\).*float32\(4,\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_refused(case: str) -> None:
    call, message = WRONG[case]
    with pytest.raises(unity.UnityError, match=message):
        call()


def test_a_decorated_function_can_be_compiled() -> None:
    np.testing.assert_array_equal(executable()(X), X * 2)


def test_a_kernel_does_not_write_to_a_read_only_array() -> None:
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    y.flags.writeable = False
    with pytest.raises(unity.UnityError, match=r"'y'.*read-only"):
        twice(x, y)
    x.flags.writeable, y = False, np.zeros(4, np.float32)
    twice(x, y)
    np.testing.assert_array_equal(y, x * 2)


def test_a_program_of_another_name_than_main_has_all_options() -> None:
    fixed = unity.compile(double, dynamic={"x": {0: 3}}, check=True)
    np.testing.assert_array_equal(fixed(X), X * 2)
    with pytest.raises(unity.UnityError, match="expected 3, got 2"):
        fixed(X[:2])
