"""Lists and trees in scripts: `relay.vm` compiles for each form that it is called with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unity import relay
from unity.errors import UnityError
from unity.relay import tvm
from unity.relay.vm import ADT

TEXT = """#[version = "0.0.5"]
type Expr { Leaf(Tensor[(2), float32]), Add(Expr, Expr), Neg(Expr) }
def @eval(%e: Expr) -> Tensor[(2), float32] {
  match (%e) { Leaf(%x) => %x, Add(%a, %b) => @eval(%a) + @eval(%b), Neg(%a) => -@eval(%a) }
}
def @main(%e: Expr, %xs: List[float32], %k: float32, %w: float32) {
  (@eval(%e) * %w, @filter(fn (%x) { %x > %k }, %xs))
}
""".replace("-@eval(%a)", "negative(@eval(%a))")
X = np.array([1, 2], np.float32)
W = {"w": np.array(2, np.float32)}
LEAF = ADT(0, [tvm.nd.array(X)])


def _listed(found: ADT) -> list[float]:
    items = []
    while found.tag == 0:
        items.append(float(found[0]))
        found = found[1]
    assert len(found) == 0
    return items


def test_a_virtual_machine_takes_trees_of_all_forms() -> None:
    machine = relay.vm.VirtualMachine(relay.vm.compile(relay.parse(TEXT), "llvm", params=W))
    trees = ((LEAF, X), (ADT(2, [LEAF]), -X), (ADT(1, [LEAF, ADT(2, [LEAF])]), X - X))
    for tree, wanted in trees:
        for items in ([], [1.0], [3.0, 1.0, 5.0]):
            value, kept = machine.invoke("main", tree, items, 2.0)  # type chosen when it runs
            np.testing.assert_array_equal(value, wanted * 2)
            assert _listed(kept) == [i for i in items if i > 2]
    machine.set_input("main", LEAF, xs=[4.0], k=2.0)
    machine.run()
    assert _listed(machine.get_outputs()[1]) == [4.0]
    assert machine.benchmark(tvm.cpu(), LEAF, [], 1.0, repeat=2, number=1).mean > 0


def test_each_form_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    real = relay.build_module.built

    def counted(*args: Any, **named: Any) -> Any:
        made.append(args)
        return real(*args, **named)

    monkeypatch.setattr("unity.relay.building.built", counted)
    run = relay.create_executor("vm", relay.parse(TEXT), params=W).evaluate()
    for items in ([1.0], [3.0], [1.0, 2.0], [5.0]):
        run(LEAF, items, 2.0)
    assert len(made) == 2


def test_what_does_not_fit_is_told() -> None:
    run = relay.create_executor("vm", relay.parse(TEXT), params=W).evaluate()
    with pytest.raises(UnityError, match="main takes e, xs, k, got e, xs"):
        run(LEAF, [])
    with pytest.raises(UnityError, match="and 1 more"):
        run(LEAF, [], 1.0, 2.0)
    with pytest.raises(UnityError, match="must be of the type Expr"):
        run([1.0], [], 1.0)
    with pytest.raises(UnityError, match="no one program is to be saved"):
        relay.vm.compile(relay.parse(TEXT)).save()


def test_bytecode_is_saved_as_a_library(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2,))
    code, lib = relay.vm.compile(tvm.IRModule.from_expr(x + x), "llvm").save()
    lib.export_library(str(tmp_path / "net.so"))
    loaded = tvm.runtime.vm.Executable.load_exec(
        code, tvm.runtime.load_module(str(tmp_path / "net.so"))
    )
    np.testing.assert_array_equal(tvm.runtime.vm.VirtualMachine(loaded, tvm.cpu()).run(X), X + X)


def test_a_graph_executor_counts_the_tensors_of_nested_tuples() -> None:
    x = relay.var("x", shape=(2,))
    nested = relay.Tuple([relay.Tuple([x + x, x * x]), relay.Tuple([x, relay.Tuple([x - x])])])
    lib = relay.build(tvm.IRModule.from_expr(nested))
    module = relay.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=X)
    assert module.get_num_outputs() == 4
    wanted = (X + X, X * X, X, X - X)
    for place, value in enumerate(wanted):
        np.testing.assert_array_equal(module.get_output(place), value)
