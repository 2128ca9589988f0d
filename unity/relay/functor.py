"""`ExprVisitor` and `ExprMutator`: how scripts walk programs and change them.

A subclass says what to do with a kind of expression, ``visit_call`` for one, and asks for its parts
by `visit`. Each node is visited once; operands come first, so that long chains need no recursion,
and neither do long rows of lets, unless a subclass has a ``visit_let`` of its own.
"""

from __future__ import annotations

from typing import Any

from unity.errors import UnityError
from unity.frontend.relay import syntax

from .expr import Expr, wrap
from .places import here

_KINDS: dict[type[syntax.Expr], str] = {
    syntax.Var: "var",
    syntax.GlobalVar: "global_var",
    syntax.Op: "op",
    syntax.Constructor: "constructor",
    syntax.Constant: "constant",
    syntax.Tuple: "tuple",
    syntax.TupleGetItem: "tuple_getitem",
    syntax.Call: "call",
    syntax.Let: "let",
    syntax.If: "if",
    syntax.Match: "match",
    syntax.Function: "function",
    syntax.RefCreate: "ref_create",
    syntax.RefRead: "ref_read",
    syntax.RefWrite: "ref_write",
}
_CHAINED = (syntax.Call, syntax.Tuple, syntax.TupleGetItem)
_WITH_LETS = (*_CHAINED, syntax.Let)


class ExprFunctor:
    """Calls a method for each kind of expression."""

    def __init__(self) -> None:
        self.memo_map: dict[Expr, Any] = {}

    def visit(self, expr: Expr) -> Any:
        """What the method of an expression's kind gives; asked once for each node.

        Raises:
            UnityError: It is no expression of Relay: `from_onnx` gives a program of Unity's.
        """
        if not hasattr(expr, "node"):
            raise UnityError(
                f"a visitor was given {type(expr).__name__}, which is no expression of Relay",
                here(),
                "relay.frontend.from_onnx gives a program of Unity's: passes of unity.transform "
                "change it (tutorial 7)",
            )
        for part in _chain(expr.node, self.memo_map, self._chained()):
            self.memo_map[part] = self._method(part)(part)
        return self.memo_map[expr]

    def _method(self, expr: Expr) -> Any:
        return getattr(self, f"visit_{_KINDS[type(expr.node)]}")

    def _chained(self) -> tuple[type[syntax.Expr], ...]:
        """The kinds of expressions whose parts are visited before they are asked for."""
        ours = (ExprVisitor.visit_let, ExprMutator.visit_let)
        return _CHAINED if getattr(type(self), "visit_let", None) not in ours else _WITH_LETS


def _chain(
    root: syntax.Expr, known: dict[Expr, Any], kinds: tuple[type[syntax.Expr], ...]
) -> list[Expr]:
    """An expression behind the operands that it is computed from, those that are not known."""
    found: dict[syntax.Expr, None] = {}
    stack: list[tuple[syntax.Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in found or wrap(node) in known:
            continue
        if ready or not isinstance(node, kinds):
            if ready or node is root:
                found[node] = None
            continue
        stack.append((node, True))
        parts = [(child, False) for child in syntax.children(node)]
        if isinstance(node, syntax.Let):  # its value comes before its body, whatever it is
            parts[0] = (node.value, not isinstance(node.value, kinds))
        stack += reversed(parts)
    return [wrap(node) for node in found]


class ExprVisitor(ExprFunctor):
    """Visits all that an expression holds."""

    def _parts(self, expr: Expr) -> None:
        for child in syntax.children(expr.node):
            self.visit(wrap(child))

    def visit_function(self, fn: Any) -> None:
        """A function: its parameters and its body."""
        for param in fn.params:
            self.visit(param)
        self._parts(fn)

    def visit_let(self, let: Any) -> None:
        """A let: its variable, its value, its body."""
        assert isinstance(let.node, syntax.Let)
        self.visit(wrap(let.node.var))
        self._parts(let)

    def visit_var(self, var: Any) -> None:
        """A variable."""

    visit_call = visit_tuple = visit_tuple_getitem = visit_if = visit_match = _parts
    visit_ref_create = visit_ref_read = visit_ref_write = _parts
    visit_global_var = visit_op = visit_constructor = visit_constant = visit_var


class ExprMutator(ExprFunctor):
    """Makes an expression anew of what its parts become; the same one where nothing changes."""

    def _node(self, node: syntax.Expr) -> syntax.Expr:
        found = self.visit(wrap(node))
        assert isinstance(found, Expr)
        return found.node

    def _var(self, var: syntax.Var) -> syntax.Var:
        found = self._node(var)
        assert isinstance(found, syntax.Var)
        return found

    def visit_call(self, call: Any) -> Any:
        """A call: what it calls, and its arguments."""
        old = call.node
        callee, args = self._node(old.callee), tuple(map(self._node, old.arguments))
        if callee is old.callee and _same(args, old.arguments):
            return wrap(old)
        return wrap(syntax.Call(callee, args, old.attributes, old.given, old.span))

    def visit_tuple(self, tup: Any) -> Expr:
        """A tuple."""
        fields = tuple(map(self._node, tup.node.fields))
        same = _same(fields, tup.node.fields)
        return wrap(tup.node if same else syntax.Tuple(fields, tup.node.span))

    def visit_tuple_getitem(self, op: Any) -> Expr:
        """A field of a tuple."""
        whole = self._node(op.node.tuple)
        same = whole is op.node.tuple
        return wrap(op.node if same else syntax.TupleGetItem(whole, op.node.index, op.node.span))

    def visit_function(self, fn: Any) -> Expr:
        """A function: its parameters, then its body."""
        old = fn.node
        params, body = tuple(map(self._var, old.params)), self._node(old.body)
        if body is old.body and _same(params, old.params):
            return wrap(old)
        return wrap(
            syntax.Function(params, body, old.result, old.type_params, old.attributes, old.span)
        )

    def visit_let(self, let: Any) -> Expr:
        """A let."""
        old = let.node
        parts = self._var(old.var), self._node(old.value), self._node(old.body)
        same = _same(parts, (old.var, old.value, old.body))
        return wrap(old if same else syntax.Let(*parts, old.span))

    def visit_if(self, ite: Any) -> Expr:
        """A choice."""
        old = ite.node
        parts = self._node(old.condition), self._node(old.then), self._node(old.otherwise)
        same = _same(parts, (old.condition, old.then, old.otherwise))
        return wrap(old if same else syntax.If(*parts, old.span))

    def visit_match(self, match: Any) -> Expr:
        """A match, its patterns as they are."""
        old = match.node
        clauses = tuple(syntax.Clause(c.pattern, self._node(c.body), c.span) for c in old.clauses)
        return wrap(syntax.Match(self._node(old.value), clauses, old.complete, old.span))

    def visit_ref_create(self, ref: Any) -> Expr:
        """A new reference."""
        return wrap(syntax.RefCreate(self._node(ref.node.value), ref.node.span))

    def visit_ref_read(self, ref: Any) -> Expr:
        """What a reference holds."""
        return wrap(syntax.RefRead(self._node(ref.node.ref), ref.node.span))

    def visit_ref_write(self, ref: Any) -> Expr:
        """A reference written."""
        old = ref.node
        return wrap(syntax.RefWrite(self._node(old.ref), self._node(old.value), old.span))

    def visit_var(self, var: Any) -> Expr:
        """A variable."""
        return wrap(var.node)

    visit_global_var = visit_op = visit_constructor = visit_constant = visit_var


def _same(new: tuple[syntax.Expr, ...], old: tuple[syntax.Expr, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
