"""Scalars that a dtype can't hold are refused, by compiled functions and the interpreter alike."""

from __future__ import annotations

import re

import numpy as np
import pytest

import unity
from unity import script
from unity.interpreter import interpret
from unity.ir.dtype import dtype
from unity.script import R, Tensor, dim, f32, parse

n = dim("n")
X = np.arange(4, dtype=np.float32)
TAKEN: dict[str, tuple[object, ...]] = {
    "uint8": (0, 255, np.int64(3), np.uint8(3)),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1, np.int64(7)),
    "float32": (3, 0.5, 3e38, float("inf"), float("nan"), np.float32(0.5)),
    "float16": (65504.0,),
    "bool": (True, np.bool_(False)),
}
REFUSED: dict[str, tuple[tuple[object, str], ...]] = {
    "uint8": ((-3, "(0 to 255), got -3"), (256, "got 256"), (True, "got True"), (3.0, "got 3.0"),
              (np.int64(300), "got 300")),
    "int32": ((2**32 + 5, "(-2147483648 to 2147483647), got 4294967301"),),
    "int64": ((2**70, "got 1180591620717411303424"), (2**63, "got 9223372036854775808")),
    "float32": ((1e300, "(up to 3.4028235e+38), got 1e+300"), (10**400, "got 1000"),
                (True, "got True")),
    "float16": ((70000.0, "(up to 65504), got 70000.0"),),
    "bool": ((1, ", got 1"), (0.0, ", got 0.0")),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_a_scalar_given(name: str) -> None:
    module = parse(f"""
n = dim("n")
@script.function
def main(x: f32[Tensor, n], t: R.Tuple(R.Prim("{name}"))):
    return R.exp(x), t[0]
""")
    exe = unity.compile(module)
    for value in TAKEN[name]:
        a, b = exe(X, (value,)), interpret(module, "main", [X, (value,)])
        assert isinstance(a, tuple)
        assert isinstance(b, tuple)
        want = np.asarray(value, dtype(name).numpy)
        np.testing.assert_array_equal(a[1], want)
        np.testing.assert_array_equal(np.asarray(b[1], want.dtype), want)
    for value, said in REFUSED[name]:
        pattern = rf"'t'\)?\[0\]: expected a number of dtype {name}.*{re.escape(said)}"
        with pytest.raises(unity.UnityError, match=pattern):
            exe(X, (value,))
        with pytest.raises(unity.UnityError, match=pattern):
            interpret(module, "main", [X, (value,)])


@pytest.mark.parametrize("name", ["uint8", "int32", "int64", "float32"])
def test_a_scalar_that_the_host_gives(name: str) -> None:
    (value, said), *_ = REFUSED[name]
    unity.register_function("test.scalar_ranges", lambda: value, override=True)
    kind = R.Prim(name)

    @script.function
    def main(x: f32[Tensor, n]) -> tuple[f32[Tensor, n], R.Object]:
        k = R.call_packed("test.scalar_ranges", out=kind)
        return R.exp(x), k

    said = rf"test\.scalar_ranges.*expected a number of dtype {name}.*{re.escape(said)}"
    with pytest.raises(unity.UnityError, match=said):
        unity.compile(main)(X)
    with pytest.raises(unity.UnityError, match=said):
        interpret(main.module(), "main", [X])
