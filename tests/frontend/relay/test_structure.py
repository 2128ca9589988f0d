"""What Relay's programs are made of: bindings, tuples, branches, functions, unknown dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.relay import from_relay
from unity.interpreter import interpret
from unity.ir.graph import Call, Function, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types

HEADER = '#[version = "0.0.5"]\n'
X = np.array([1.0, -2.0, 3.0], np.float32)


def _module(text: str) -> IRModule:
    module = from_relay(HEADER + text)
    verify(module)
    check_types(module)
    return module


def _run(text: str, *inputs: object) -> Any:
    return interpret(_module(text), "main", list(inputs))


def _calls(module: IRModule) -> list[str]:
    main = module["main"]
    assert isinstance(main, Function)
    values = [b.value for b in walk_bindings(main)]
    return [v.callee.name for v in values if isinstance(v, Call) and isinstance(v.callee, Op)]


def test_a_binding_of_the_graph_is_computed_once() -> None:
    text = """def @main(%x: Tensor[(3), float32]) {
      %0 = exp(%x);
      %1 = add(%0, %0);
      multiply(%1, %0)
    }"""
    assert _calls(_module(text)) == ["exp", "add", "multiply"]
    np.testing.assert_allclose(_run(text, X), 2 * np.exp(X) ** 2, rtol=1e-6)


def test_tuples_and_projections() -> None:
    text = """def @main(%x: Tensor[(3), float32], %p: (Tensor[(3), float32], float32)) {
      let %pair = (%x, (negative(%x), %p.1));
      %0 = %pair.1;
      (add(%0.0, %p.0), %0.1)
    }"""
    found = _run(text, X, (X * 2, np.float32(7)))
    np.testing.assert_allclose(found[0], X)
    assert found[1] == 7


def test_a_branch_is_taken_when_the_program_runs() -> None:
    text = """def @main(%x: Tensor[(3), float32], %c: bool) {
      %0 = exp(%x);
      %1 = if (%c) { add(%0, %x) } else { %2 = negative(%x); multiply(%2, %0) };
      subtract(%1, %0)
    }"""
    e = np.exp(X)
    np.testing.assert_allclose(_run(text, X, np.array(True)), X + e - e, atol=1e-6)
    np.testing.assert_allclose(_run(text, X, np.array(False)), -X * e - e, rtol=1e-6)
    exe = unity.compile(_module(text))
    np.testing.assert_allclose(exe(X, np.array(False)), -X * e - e, rtol=1e-6)


def test_functions_are_put_in_place_where_they_are_called() -> None:
    text = """def @scale(%x: Tensor[(3), float32], %by: float32) -> Tensor[(3), float32] {
      multiply(%x, %by)
    }
    def @main(%x: Tensor[(3), float32]) {
      %0 = fn (%p: Tensor[(3), float32], Primitive=1) { nn.relu(%p) };
      %1 = fn (%p: Tensor[(3), float32], Compiler="dnnl", global_symbol="f") { exp(%p) };
      let %twice = fn (%f: fn (Tensor[(3), float32]) -> Tensor[(3), float32], %v) { %f(%f(%v)) };
      let %add = fn (%v: Tensor[(3), float32]) { add(%v, %x) };
      %2 = @scale(%0(%x), 2f);
      add(%twice(%add, %2), %1(%x))
    }"""
    module = _module(text)
    assert list(module.graph_functions()) == ["main"]
    wanted = 2 * np.maximum(X, 0) + 2 * X + np.exp(X)
    found = np.asarray(interpret(module, "main", [X]), np.float64)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_function_that_calls_itself_reads_what_is_around_it() -> None:
    text = """def @main(%x: Tensor[(3), float32], %n: int32) {
      let %k = exp(%x);
      let %loop = fn (%i: int32, %s: Tensor[(3), float32]) -> Tensor[(3), float32] {
        if (less(%i, %n)) { %loop(add(%i, 1), add(%s, %k)) } else { %s }
      };
      %loop(0, %x)
    }"""
    module = _module(text)
    wanted = X + 3 * np.exp(X)
    count = np.array(3, np.int32)
    found = np.asarray(interpret(module, "main", [X, count]), np.float64)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(unity.compile(module)(X, count), wanted, rtol=1e-6)


def test_global_functions_that_call_each_other() -> None:
    text = """def @even(%n: int32) -> bool {
      if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) }
    }
    def @odd(%n: int32) -> bool {
      if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) }
    }
    def @main(%n: int32) { @even(%n) }"""
    for n in range(4):
        assert bool(_run(text, np.array(n, np.int32))) is (n % 2 == 0)


def test_unknown_dims_are_symbols_that_operators_and_declarations_unify() -> None:
    text = """def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, ?), float32]) {
      let %z: Tensor[(?, 4), float32] = nn.dense(%x, %y);
      nn.softmax(concatenate((%z, exp(%z)), axis=0))
    }"""
    module = _module(text)
    x, y = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    assert np.asarray(interpret(module, "main", [x, y])).shape == (4, 4)
    with pytest.raises(UnityError):
        interpret(module, "main", [x, np.ones((5, 3), np.float32)])
    with pytest.raises(UnityError):
        interpret(module, "main", [x, np.ones((4, 2), np.float32)])


def test_thousands_of_bindings() -> None:
    lines = ["def @main(%x: Tensor[(3), float32]) {"]
    lines += [f"  let %v{i} = add(%{'x' if i == 0 else f'v{i - 1}'}, %x);" for i in range(1200)]
    module = from_relay(HEADER + "\n".join([*lines, "  %v1199", "}"]))
    assert _calls(module) == ["add"] * 1200


def test_everything_refused_is_listed_with_its_place() -> None:
    text = """def @main(%x: Tensor[(3), float32]) {
      %0 = memory.kill(%x);
      let %r = ref(%x);
      let %f = fn (%a: Tensor[(3), float32]) -> Tensor[(3), float32] { %f(ref_read(%r)) };
      add(exp(%0), %f(%x))
    }"""
    with pytest.raises(UnsupportedError) as error:
        from_relay(HEADER + text)
    message = str(error.value)
    assert ":3:" in message
    assert "memory.kill (made by TVM's lowering" in message
    assert ":5:" in message
    assert "a reference made outside of the function" in message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("add(%x, 1)", "takes operands of one dtype, got float32 and int32"),
        ("reshape(%x, newshape=[2, 2])", "reshape"),
        ("let %y: Tensor[(4), float32] = exp(%x); %y", "the extent 4 at axis 0, and it has 3"),
        ("nn.dense(%x, reshape(%x, newshape=[1, 3]), units=7)", "units is 7"),
        ("transpose(%x, axes=[3])", "axis 3 is out of range"),
    ],
)
def test_mistakes_are_told_at_their_place(body: str, said: str) -> None:
    with pytest.raises(UnityError, match=said) as error:
        from_relay(f"{HEADER}def @main(%x: Tensor[(3), float32]) {{ {body} }}")
    assert error.value.span is not None
    assert error.value.span.line == 2
