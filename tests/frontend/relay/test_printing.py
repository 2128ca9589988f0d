"""Relay's syntax prints to a text that reads back to the same program."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.relay.test_samples import samples
from unity.frontend.relay.read import read_relay
from unity.frontend.relay.saved.params import read_params
from unity.frontend.relay.saved.writing import params_bytes
from unity.frontend.relay.syntax import Module
from unity.frontend.relay.text.printing import print_relay
from unity.frontend.relay.translator import translate
from unity.ir.dtype import Array
from unity.ir.equality import first_difference
from unity.ir.graph import Function
from unity.ir.module import IRModule

RECURSIVE = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 3), float32], %n.0: int32, %w: (float32, float32)) {
  let %g: fn (int32, Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] =
      fn (%i: int32, %y: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] {
    if (less(%i, 1)) { %y } else { %0 = subtract(%i, 1); %g(%0, add(%y, -1.5f)) }
  };
  let %twice = add(%x, %x);
  %1 = split(%twice, indices_or_sections=3, axis=1);
  %2 = fn (%a: Tensor[(?, 3), float32], Primitive=1, Composite="a.b") { nn.relu(%a) };
  (%g(%n.0, %x), %1.0, %w.1, %2(%x), nn.leaky_relu(%x, alpha=0.1f), multiply(%x, 1e-07f), %1)
}
"""
LISTS = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%x: Tensor[(2, 3), float32]) {
  match (Cons(%x, Nil)) { Cons(%a, _) => { nn.relu(%a) }, Nil => { %x }, }
}
"""
SAMPLES = sorted(samples()["programs"].values())


def _program(module: Module) -> IRModule:
    """What it is translated to, without what it is called."""
    found = translate(module)
    main = found["main"]
    assert isinstance(main, Function)
    bare = Function(main.params, main.body, main.result, main.pure)
    return IRModule({**found.functions, "main": bare})


@pytest.mark.parametrize("source", [RECURSIVE, LISTS, *SAMPLES[::4]])
def test_a_text_reads_back(source: str) -> None:
    module = read_relay(source)
    text = print_relay(module)
    back = read_relay(text)
    assert first_difference(_program(module), _program(back)) is None
    assert print_relay(back) == text


def test_large_constants_stand_in_the_metadata() -> None:
    table = np.arange(6, dtype=np.int8).reshape(2, 3)
    text = '#[version = "0.0.5"]\ndef @main() { meta[relay.Constant][0] }\n'
    printed = print_relay(read_relay(text, constants=[table]))
    main = translate(read_relay(printed))["main"]
    assert isinstance(main, Function)
    assert "int8(2, 3)" in str(main.result)
    assert "metadata" not in print_relay(read_relay(printed), constants=False)


def test_a_chain_of_thousands_prints() -> None:
    lines = "\n".join(f"  %{i + 1} = negative(%{i});" for i in range(5000))
    text = (
        f'#[version = "0.0.5"]\ndef @main(%x: float32) {{\n  %0 = exp(%x);\n{lines}\n  %5000\n}}\n'
    )
    assert print_relay(read_relay(text)).count("negative") == 5000


def test_parameters_are_written_as_tvm_writes_them() -> None:
    arrays: dict[str, Array] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b.c": np.array(3, np.int64),
        "d": np.array([True, False]),
    }
    back = read_params(params_bytes(arrays))
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
