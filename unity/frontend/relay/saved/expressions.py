"""Expressions among TVM's objects; made without recursion, for chains of them are long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .. import syntax
from ..calls import operator_call
from ..schema import signature
from ..schema.legacy import upgraded
from .objects import Node, Objects
from .plain import attributes_of, constant_of, is_empty, plain
from .types import type_of

_MEMBERS: dict[str, tuple[str, ...]] = {
    "relay.TupleGetItem": ("tuple_value",),
    "relay.Call": ("op",),
    "relay.Let": ("var", "value", "body"),
    "relay.If": ("cond", "true_branch", "false_branch"),
    "relay.Match": ("data",),
    "relay.Function": ("body",),
    "relay.RefCreate": ("value",),
    "relay.RefRead": ("ref",),
    "relay.RefWrite": ("ref", "value"),
}
"""The fields of each kind of object that are expressions."""
_LISTS = {"relay.Tuple": "fields", "relay.Call": "args", "relay.Function": "params"}
"""Those that are arrays of expressions."""
_OTHERS: dict[str, tuple[str, ...]] = {
    "relay.Var": ("vid", "name_hint", "type_annotation"),
    "relay.Call": ("attrs", "type_args"),
    "relay.TupleGetItem": ("index",),
    "relay.Match": ("clauses", "complete"),
    "relay.Function": ("ret_type", "type_params", "attrs"),
    "relay.Constant": ("data",),
    "GlobalVar": ("name_hint",),
}
"""What else is read of each, or is a type that translating finds again."""
_EVERYWHERE = ("span", "_checked_type_", "checked_type_")
_OPAQUE = ("Op", "Constructor")
"""Objects that only name something: the fields of a declaration stand in them, too."""


@dataclass(slots=True)
class Expressions:
    """Makes expressions; one object is one expression.

    Attributes:
        objects: The graph.
        ignored: What was read and is in no expression.
    """

    objects: Objects
    ignored: list[syntax.Ignored] = field(default_factory=list[syntax.Ignored])
    _made: dict[int, syntax.Expr] = field(default_factory=dict[int, syntax.Expr])

    def expression(self, index: int) -> syntax.Expr:
        """The expression that an object is.

        Raises:
            UnityError: It is none, or is damaged, or holds itself.
        """
        stack, open_ = [index], set[int]()
        while stack:
            top = stack[-1]
            if top in self._made:
                stack.pop()
                continue
            node = self.objects.node(top)
            missing = [i for i in self._parts(node) if i not in self._made]
            if not missing:
                self._made[top] = self._make(node)
                open_.discard(top)
                stack.pop()
            elif top in open_:
                raise self.objects.error(node, "an expression that holds itself")
            else:
                open_.add(top)
                stack += reversed(missing)
        return self._made[index]

    def _parts(self, node: Node) -> list[int]:
        """The objects that must be made before one is."""
        objects = self.objects
        found = [objects.member(node, name).index for name in _MEMBERS.get(node.key, ())]
        if node.key in _LISTS:
            found += [m.index for m in objects.members(node, _LISTS[node.key])]
        if node.key == "relay.Match":
            for clause in objects.members(node, "clauses"):
                found.append(objects.member(clause, "rhs").index)
        return found

    def _make(self, node: Node) -> syntax.Expr:
        objects = self.objects
        made = _MAKERS.get(node.key)
        if made is None:
            raise objects.error(node, "this is no Relay expression")
        self._note_rest(node)
        return made(self, node)

    def _note_rest(self, node: Node) -> None:
        """Note the fields of an object that nothing reads."""
        key = node.key
        if key in _OPAQUE:
            return
        read = (*_EVERYWHERE, *_MEMBERS.get(key, ()), _LISTS.get(key), *_OTHERS.get(key, ()))
        for name, text in node.fields.items():
            if name in read or is_empty(self.objects, text):
                continue
            if name == "virtual_device_" and not _is_bound(self.objects, node):
                continue
            value = plain(self.objects, int(text)) if text.isdecimal() else text
            owner = f"objects of `{key}`"
            span = self.objects.span(node)
            self.ignored.append(syntax.Ignored(owner, name.rstrip("_"), value, span))

    def of(self, node: Node, name: str) -> syntax.Expr:
        """A field that was made."""
        return self._made[self.objects.member(node, name).index]

    def all_of(self, node: Node, name: str) -> tuple[syntax.Expr, ...]:
        """A field that is an array, made."""
        return tuple(self._made[m.index] for m in self.objects.members(node, name))

    def var(self, node: Node) -> syntax.Var:
        """A variable, which an expression need not have named.

        Raises:
            UnityError: The object is something else.
        """
        found = self._made.get(node.index)
        if found is None:
            found = self._made[node.index] = self._make(node)
        if not isinstance(found, syntax.Var):
            raise self.objects.error(node, "expected a variable")
        return found


def _is_bound(objects: Objects, node: Node) -> bool:
    """Whether an object says on which device it is, and not that it may be on any."""
    device = objects.member(node, "virtual_device_")
    says = device.fields.get
    return says("device_type_int", "-1") not in ("-1", "0") or not all(
        is_empty(objects, says(name, "")) for name in ("target", "memory_scope")
    )


def _var(made: Expressions, node: Node) -> syntax.Expr:
    objects = made.objects
    named = objects.member(node, "vid") if "vid" in node.fields else node
    annotated = type_of(objects, objects.optional(node, "type_annotation"))
    return syntax.Var(objects.string(named, "name_hint"), annotated, objects.span(node))


def _call(made: Expressions, node: Node) -> syntax.Expr:
    objects, span = made.objects, made.objects.span(node)
    callee, arguments = made.of(node, "op"), made.all_of(node, "args")
    held = objects.optional(node, "attrs")
    if not isinstance(callee, syntax.Op):
        found = plain(objects, held.index) if held is not None else {}
        if not isinstance(found, dict):
            made.ignored.append(syntax.Ignored("calls of functions", "attrs", found, span))
        given = found if isinstance(found, dict) else {}
        return syntax.Call(callee, arguments, given, tuple(given), span)
    today = signature(upgraded(callee.name, {}, len(arguments), before_0_8=False).operator)
    attributes: syntax.Attributes = {}
    if held is not None and held.key == "DictAttrs":  # those of a pass, not the operator's
        rest = plain(objects, held.index)
        owner = f"calls of `{callee.name}`"
        for name, value in rest.items() if isinstance(rest, dict) else ():
            made.ignored.append(syntax.Ignored(owner, name, value, span))
    elif held is not None and today is not None:
        attributes = attributes_of(objects, held, callee.name, today.fields, made.ignored)
    old = objects.before_0_8 or (callee.name == "nn.batch_matmul" and held is None)
    return operator_call(callee, arguments, attributes, span, before_0_8=old)


def _function(made: Expressions, node: Node) -> syntax.Expr:
    objects = made.objects
    params = tuple(made.var(m) for m in objects.members(node, "params"))
    result = type_of(objects, objects.optional(node, "ret_type"))
    own = tuple(objects.string(p, "name_hint") for p in objects.members(node, "type_params"))
    held = objects.optional(node, "attrs")
    attributes = plain(objects, held.index) if held is not None else {}
    if not isinstance(attributes, dict):
        raise objects.error(node, "its attributes are no map")
    if isinstance(result, syntax.Hole):
        result = None
    body = made.of(node, "body")
    return syntax.Function(params, body, result, own, attributes, objects.span(node))


def _match(made: Expressions, node: Node) -> syntax.Expr:
    objects = made.objects
    clauses = []
    for member in objects.members(node, "clauses"):
        pattern = _pattern(made, objects.member(member, "lhs"), 0)
        clauses.append(syntax.Clause(pattern, made.of(member, "rhs"), objects.span(member)))
    complete = node.fields.get("complete", "1") != "0"
    return syntax.Match(made.of(node, "data"), tuple(clauses), complete, objects.span(node))


def _pattern(made: Expressions, node: Node, depth: int) -> syntax.Pattern:
    objects, span = made.objects, made.objects.span(node)
    if depth > 100:
        raise objects.error(node, "patterns are nested too deeply")
    match node.key:
        case "relay.PatternWildcard":
            return syntax.WildcardPattern(span)
        case "relay.PatternVar":
            return syntax.VarPattern(made.var(objects.member(node, "var")), span)
        case "relay.PatternTuple":
            fields = objects.members(node, "patterns")
            return syntax.TuplePattern(tuple(_pattern(made, f, depth + 1) for f in fields), span)
        case "relay.PatternConstructor":
            name = objects.string(objects.member(node, "constructor"), "name_hint")
            fields = objects.members(node, "patterns")
            found = tuple(_pattern(made, f, depth + 1) for f in fields)
            return syntax.ConstructorPattern(name, found, span)
        case _:
            raise objects.error(node, "expected a pattern")


def _op(made: Expressions, node: Node) -> syntax.Expr:
    name = node.text if node.text is not None else made.objects.string(node, "name")
    return syntax.Op(name, made.objects.span(node))


def _let(made: Expressions, node: Node) -> syntax.Expr:
    var = made.var(made.objects.member(node, "var"))
    return syntax.Let(var, made.of(node, "value"), made.of(node, "body"), made.objects.span(node))


def _projection(made: Expressions, node: Node) -> syntax.Expr:
    index = made.objects.number(node, "index")
    return syntax.TupleGetItem(made.of(node, "tuple_value"), index, made.objects.span(node))


_MAKERS: dict[str, Callable[[Expressions, Node], syntax.Expr]] = {
    "relay.Var": _var,
    "relay.Call": _call,
    "relay.Function": _function,
    "relay.Match": _match,
    "relay.Let": _let,
    "relay.TupleGetItem": _projection,
    "Op": _op,
    "GlobalVar": lambda m, n: syntax.GlobalVar(m.objects.string(n, "name_hint"), m.objects.span(n)),
    "Constructor": lambda m, n: syntax.Constructor(
        m.objects.string(n, "name_hint"), m.objects.span(n)
    ),
    "relay.Constant": lambda m, n: syntax.Constant(
        constant_of(m.objects, n.index), m.objects.span(n)
    ),
    "relay.Tuple": lambda m, n: syntax.Tuple(m.all_of(n, "fields"), m.objects.span(n)),
    "relay.If": lambda m, n: syntax.If(
        m.of(n, "cond"), m.of(n, "true_branch"), m.of(n, "false_branch"), m.objects.span(n)
    ),
    "relay.RefCreate": lambda m, n: syntax.RefCreate(m.of(n, "value"), m.objects.span(n)),
    "relay.RefRead": lambda m, n: syntax.RefRead(m.of(n, "ref"), m.objects.span(n)),
    "relay.RefWrite": lambda m, n: syntax.RefWrite(
        m.of(n, "ref"), m.of(n, "value"), m.objects.span(n)
    ),
}
