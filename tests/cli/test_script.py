"""``unity script fmt``: programs in our language, whichever they are written in."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from unity.cli.app import app
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.script import parse, tvmscript
from unity.script.formatting import formatted

OLD = """\
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("llvm")]})

    @R.function(pure=False)
    def main(x: R.Tensor((2, 8, 6, 6), "float32", "llvm"), g: R.Tensor((8,), "float32")):
        R.func_attr({"tir_var_upper_bound": {"n": 64}})
        cls = Module
        storage = R.memory.alloc_storage(R.shape([16]), 0, "global", "uint8")
        lent = R.memory.alloc_tensor(storage, 0, R.shape([4]), R.dtype("float32"))
        y = R.layout_transform(x, T.index_map(lambda n, c, h, w: (n, c // 4, h, w, c % 4)))
        z: R.Tensor((2, 2, 3, 3, 4), "float32") = R.nn.max_pool2d(
            y, (2, 2), (2, 2), layout="NCHW4c"
        )
        whole = R.layout_transform(z, lambda n, c, h, w, b: (n, c * 4 + b, h, w))
        norm = R.nn.batch_norm(whole, g, g, g, g, axis=1, momentum=0.5)
        R.assert_op(R.prim_value(True), format="held")
        _ = R.memory.kill_storage(storage)
        return cls.last(norm[0])

    @R.function
    def last(x: R.Tensor((2, 8, 3, 3), "float32")):
        one, zero = R.ones((8,), "float32"), R.zeros((8,), "float32")
        return R.nn.instance_norm(x, one, zero, 1, [0, 2, 3])
"""
SEVERAL = """\
@I.ir_module
class Several:
    I.module_attrs({"version": 3})

    @R.function(pure=False)
    def main(x: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        cls = Several
        c = R.const([[0.5], [1.5], [2.5], [3.5], [4.5]] * 4, "float32")
        y = R.call_tir(cls.add_one, (x,), out_sinfo=R.Tensor((n, 4), "float32"))
        z = cls.twice(y)
        _ = R.call_packed("note", z, sinfo_args=R.Object)
        return z, c

    @R.function
    def twice(x: R.Tensor(("n", 4), "float32")):
        return R.add(x, x)

    @T.prim_func
    def add_one(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4))
        B = T.match_buffer(b, (n, 4))
        for i, j in T.grid(n, 4):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
"""
CIRCLE = """\
@I.ir_module
class Parity:
    @R.function
    def even(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        if R.equal(n, R.const(0, "int64")):
            r = R.const(True, "bool")
        else:
            r = Parity.odd(R.subtract(n, R.const(1, "int64")))
        return r

    @R.function
    def odd(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        if R.equal(n, R.const(0, "int64")):
            r = R.const(False, "bool")
        else:
            r = Parity.even(R.subtract(n, R.const(1, "int64")))
        return r
"""
OURS = "@script.function\ndef f(x: f32[Tensor, 4]):\n    return (x + 1.0)\n"


def unity(*args: object) -> None:
    app([str(a) for a in args], standalone_mode=False)


def test_a_module_of_tvm_comes_out_in_our_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.py").write_text(OLD)
    unity("script", "fmt", tmp_path / "old.py")
    printed = capsys.readouterr().out
    assert "@script.function" in printed
    assert "tvm" not in printed.replace("tir_var", "")
    assert "I." not in printed
    read, back = tvmscript.parse(OLD), parse(printed)
    assert first_difference(read, back) is None
    rng = np.random.default_rng(0)
    args = [rng.random((2, 8, 6, 6), np.float32), rng.random(8, np.float32)]
    expected = args[0].reshape(2, 8, 3, 2, 3, 2).max((3, 5))
    expected = (expected - expected.mean((0, 2, 3), keepdims=True)) / expected.std(
        (0, 2, 3), keepdims=True
    )
    g = args[1].reshape(1, 8, 1, 1)
    expected = expected * g + g
    expected -= expected.mean((0, 2, 3), keepdims=True)
    expected /= expected.std((0, 2, 3), keepdims=True)
    found = np.asarray(interpret(back, "main", args))
    np.testing.assert_allclose(found, expected, rtol=5e-2, atol=5e-3)


def test_our_own_language_is_formatted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ours.py").write_text(OURS)
    unity("script", "fmt", tmp_path / "ours.py")
    assert "    add = R.add(x, 1.0)\n    return add\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (OLD, "Module"),
        (SEVERAL, "Several"),
        (CIRCLE, "Parity"),
        (f"{OURS}\nm = script.module(f)", "m"),
    ],
)
def test_what_is_printed_runs_and_makes_the_same_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, name: str
) -> None:
    """Python runs the file: imports, functions below those they name, the module by its name."""
    (tmp_path / "old.py").write_text(text)
    unity("script", "fmt", tmp_path / "old.py")
    made = tmp_path / "made.py"
    made.write_text(capsys.readouterr().out)
    read = parse(text) if text.startswith(OURS) else tvmscript.parse(text)
    back = runpy.run_path(str(made))[name]
    assert first_difference(read, back) is None
    assert dict(back.attrs) == dict(read.attrs)
    if text != CIRCLE:  # that is a text in a program
        assert first_difference(read, parse(made.read_text())) is None
        unity("script", "fmt", made)
        assert capsys.readouterr().out == made.read_text()


def test_too_large_a_constant_is_no_text() -> None:
    text = '@R.function\ndef f():\n    return R.const([0.5] * 70000, "float32")\n'
    with pytest.raises(UnityError, match="1 constants are too large for a text: const_0"):
        formatted(text, "old.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "holds no program"),
        ("def f(:\n", "invalid syntax"),
        (OLD.replace("momentum=0.5", "speed=0.5"), r"bad.py:21:59: .* has no parameter 'speed'"),
    ],
)
def test_what_is_no_program_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(UnityError, match=message):
        unity("script", "fmt", tmp_path / "bad.py")


@pytest.mark.parametrize(
    ("name", "message"), [("none.py", "there is no file"), ("m.onnx", "is no Python program")]
)
def test_files_that_are_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "m.onnx").write_text("")
    with pytest.raises(UnityError, match=message):
        unity("script", "fmt", tmp_path / name)
