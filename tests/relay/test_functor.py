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


def test_long_rows_of_lets_need_no_recursion() -> None:
    x = relay.var("x", shape=(2,))
    names = [relay.var(f"v{i}", shape=(2,)) for i in range(3000)]
    body: Any = names[-1]
    for before, name in reversed([*zip([x, *names], names, strict=False)]):
        body = relay.Let(name, relay.exp(before), body)
    function = relay.Function([x], body)
    found = Counted()
    found.visit(function)
    assert found.calls == ["exp"] * 3000
    assert str(tvm.IRModule.from_expr(Replaced().visit(function))).count("tanh(") == 3000


class Scoped(ExprVisitor):
    """Which variables are bound where a call stands."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: list[str] = []
        self.seen: dict[str, list[str]] = {}

    def visit_let(self, let: Any) -> None:
        self.visit(let.value)
        self.bound.append(let.var.name_hint)
        self.visit(let.body)

    def visit_call(self, call: Any) -> None:
        self.seen[call.op.name] = [*self.bound]
        super().visit_call(call)


def test_a_visitor_of_lets_sees_them_in_its_own_order() -> None:
    x = relay.var("x", shape=(2,))
    a, b = relay.var("a"), relay.var("b")
    inner = relay.Let(b, relay.tanh(a), relay.nn.relu(b))
    found = Scoped()
    found.visit(relay.Function([x], relay.Let(a, relay.exp(x), inner)))
    assert found.seen == {"exp": [], "tanh": ["a"], "nn.relu": ["a", "b"]}
