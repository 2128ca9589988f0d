"""Scripts' own visitors and mutators of Relay's expressions."""

from __future__ import annotations

from typing import Any

from unity import relay
from unity.relay import tvm
from unity.relay.functor import ExprMutator, ExprVisitor

LISTS = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%x: Tensor[(2), float32], %c: bool) {
  let %r = ref(exp(%x));
  let %z = if (%c) { negative(%x) } else { ref_read(%r) };
  match (Cons(%z, Nil)) { Cons(%a, _) => { nn.relu(%a) }, Nil => { %x }, }
}
"""


class Counted(ExprVisitor):
    """Counts calls of operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def visit_call(self, call: Any) -> None:
        super().visit_call(call)
        if isinstance(call.op, relay.Op):
            self.calls.append(call.op.name)


class Replaced(ExprMutator):
    """exp becomes tanh."""

    def visit_call(self, call: Any) -> Any:
        new = super().visit_call(call)
        if isinstance(new.op, relay.Op) and new.op.name == "exp":
            return relay.tanh(*new.args)
        return new


def test_a_visitor_sees_each_node_once() -> None:
    x = relay.var("x", shape=(2,))
    y = relay.exp(x)
    found = Counted()
    found.visit(relay.Function([x], relay.Tuple([y + y, relay.nn.relu(y)])))
    assert sorted(found.calls) == ["add", "exp", "nn.relu"]
    found.visit(relay.parse(LISTS)["main"])
    assert found.calls[3:] == ["exp", "negative", "nn.relu"]


def test_a_mutator_changes_what_it_says_and_keeps_the_rest() -> None:
    mod = relay.parse(LISTS)
    text = mod.astext()
    mod["main"] = Replaced().visit(mod["main"])
    assert mod.astext() == text.replace("exp(", "tanh(")
    main = mod["main"]
    assert Replaced().visit(main.params[0]) == main.params[0]
    x = relay.var("x", shape=(2,))
    same = relay.Function([x], relay.nn.relu(x))
    assert Replaced().visit(same) == same


def test_long_chains_need_no_recursion() -> None:
    value = x = relay.var("x", shape=(2,))
    for _ in range(3000):
        value = relay.exp(value)
    mod = tvm.IRModule.from_expr(relay.Function([x], value))
    run = relay.transform.function_pass(lambda f, m, c: Replaced().visit(f), opt_level=1)
    assert str(run(mod)).count("tanh(") == 3000
