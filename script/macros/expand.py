"""Puts macros in place of their calls: syntax to syntax, before anything else reads a function.

Comes in: a function's definition, and the names around it. Goes out: a definition without macros,
the names that what was put in place needs besides, and the files that it is from, so that errors
in a macro show the macro's own line, and that of the call.

A name that a macro binds gets a number where the function has one of that name, and so does a name
that it reads where the same name means something else at the call: neither sees the other's.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias

from unity.arguments import Named
from unity.errors import UnityError

from ..parser.evaluate import Evaluator
from ..parser.leaving.exits import exits
from ..parser.scope import MISSING, Scope
from ..parser.source import Source
from .decided import Known, decided
from .macro import SCRIPT, TVMSCRIPT, Local, ScriptMacro, Written, decorated, of_definition
from .names import (
    Replacing,
    bound_names,
    directly_bound,
    free_names,
    params_of,
    read_names,
)

Macro: TypeAlias = ScriptMacro[..., Any]
_DEEPEST = 64
_BLOCKS = ("T.block", "T.sblock")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where statements stand: the function's names and macros that they see."""

    visible: frozenset[str] = frozenset()
    macros: Mapping[str, Macro] = field(default_factory=dict)
    depth: int = 0

    def within(self, names: set[str], macros: Mapping[str, Macro] | None = None) -> _Place:
        """A suite in it."""
        known = self.macros if macros is None else macros
        return _Place(self.visible | names, known, self.depth)


class Expander:
    """Puts macros in place in the functions of a module.

    Args:
        source: Where they are written.
        captured: The names around them, innermost first.
        spellings: The decorators of macros in their language.
        modules: Names of the module itself, whose macros are its attributes.
    """

    def __init__(
        self,
        source: Source,
        captured: Sequence[Mapping[str, object]],
        spellings: Sequence[str] = (SCRIPT,),
        modules: Sequence[str] = (),
    ) -> None:
        self.source = source
        self.names: dict[str, object] = {}
        """What new names mean."""
        self._captured = captured
        self._spellings = spellings
        self._modules = modules
        self._taken: set[str] = set()
        self._bound: set[str] = set()
        self._calls: dict[Macro, int] = {}
        self._kernel = False

    def function(self, node: ast.FunctionDef, kernel: bool) -> ast.FunctionDef:
        """The function without macros: a new tree, or the same if it has none.

        Args:
            node: Its definition.
            kernel: Whether it is a prim func.

        Raises:
            UnityError: A call does not fit its macro, or a macro can't stand where it is called.
        """
        if not self._has_macros(node):
            return node
        self._kernel, self._calls = kernel, {}
        self._bound = bound_names([node])
        self._taken |= self._bound | read_names([node])
        made = copy.deepcopy(node)
        place = _Place(frozenset(a.arg for a in params_of(node)))
        made.body = self._suite(made.body, place) or [ast.copy_location(ast.Pass(), node)]
        ast.fix_missing_locations(made)
        return made

    def _has_macros(self, node: ast.FunctionDef) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.FunctionDef) and decorated(self.source, part, self._spellings):
                return True
            if isinstance(part, ast.Call) and self.named(part.func, _Place()) is not None:
                return True
        return False

    # What names mean

    def _lookup(self, name: str) -> object:
        for names in (self.names, *self._captured):
            if name in names:
                return names[name]
        return MISSING

    def named(self, node: ast.expr, place: _Place) -> Macro | None:
        """The macro that an expression names."""
        found: object = None
        match node:
            case ast.Name(name):
                found = place.macros.get(name)
                if found is None and (name not in self._bound or name in self.names):
                    found = self._lookup(name)
            case ast.Attribute(ast.Name(module), name) if module in self._modules:
                found = self._lookup(name)
            case ast.Attribute(value, name):
                whole = self._module(value)
                found = None if whole is None else getattr(whole, name, None)
            case _:
                pass
        return found if isinstance(found, ScriptMacro) else None

    def _module(self, node: ast.expr) -> object:
        match node:
            case ast.Name(name) if name not in self._bound:
                found = self._lookup(name)
            case ast.Attribute(value, name):
                found = getattr(self._module(value), name, None)
            case _:
                return None
        return found if isinstance(found, ModuleType) else None

    def _free(self, name: str) -> str:
        found, count = name, 0
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def _meaning(self, name: str, value: object) -> str:
        """A new name of a value."""
        for known, meant in self.names.items():
            if meant is value and known.rpartition("_")[0] == name:
                return known
        found = self._free(name)
        while self._lookup(found) is not MISSING:
            found = self._free(name)
        self.names[found] = value
        return found

    # Statements

    def _suite(self, nodes: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        macros = dict(place.macros)
        direct = directly_bound(nodes) if self._kernel else bound_names(nodes)
        inner = place.within(direct, macros)
        found: list[ast.stmt] = []
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                spelling = decorated(self.source, node, self._spellings)
                if spelling is not None:
                    macros[node.name] = self._local(node, spelling, inner)
                    continue
            found += self._statement(node, inner)
        return found

    def _local(self, node: ast.FunctionDef, spelling: str, place: _Place) -> Macro:
        made = of_definition(self.source, node, spelling, [self.names, *self._captured])
        local = Local(place.visible, place.macros)
        return ScriptMacro(made.name, spelling, made.source, node, made.names, made.hygienic, local)

    def _statement(self, node: ast.stmt, place: _Place) -> list[ast.stmt]:
        match node:
            case ast.Expr(ast.Call() as call) if self._kernel:
                macro = self.named(call.func, place)
                if macro is not None:
                    return self.put(macro, call, place)[0]
                self._refuse(node, place)
                return [node]
            case ast.Expr(ast.Call() as call) if (
                macro := self.named(call.func, place)
            ) is not None:
                hoisting = _Hoisting(self, place)
                hoisting.generic_visit(call)
                body, value = self.put(macro, call, place)
                node.value = call if value is None else value
                called = isinstance(value, ast.Call)
                return [*hoisting.before, *body, *([node] if called else [])]
            case ast.For(target=target, iter=head):
                before = self._heads(node, [head], place)
                node.body = self._block(node.body, place.within(bound_names([target])))
                node.orelse = self._suite(node.orelse, place)
                return [*before, node]
            case ast.If(test=head) | ast.While(test=head):
                before = self._heads(node, [head], place)
                if before and isinstance(node, ast.While):
                    raise self.source.error(
                        head, "a macro can't stand in a loop's condition", "bind its value before"
                    )
                node.body = self._block(node.body, place)
                node.orelse = self._suite(node.orelse, place)
                return [*before, node]
            case ast.With(items=items):
                before = self._heads(node, [i.context_expr for i in items], place)
                node.body = self._block(node.body, place.within(bound_names(items)))
                return [*before, node]
            case ast.FunctionDef():
                names = {a.arg for a in params_of(node)}
                node.body = self._block(node.body, place.within(names))
                return [node]
            case _ if self._kernel:
                self._refuse(node, place)
                return [node]
            case _:
                hoisting = _Hoisting(self, place)
                hoisting.generic_visit(node)
                return [*hoisting.before, node]

    def _block(self, nodes: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        return self._suite(nodes, place) or [ast.copy_location(ast.Pass(), nodes[0])]

    def _heads(self, node: ast.stmt, heads: Sequence[ast.expr], place: _Place) -> list[ast.stmt]:
        """What stands before a statement whose head calls macros."""
        if self._kernel:
            for head in heads:
                self._refuse(head, place)
            return []
        hoisting = _Hoisting(self, place)
        match node:
            case ast.For():
                node.iter = hoisting.visit(node.iter)
            case ast.If() | ast.While():
                node.test = hoisting.visit(node.test)
            case ast.With():
                for item in node.items:
                    item.context_expr = hoisting.visit(item.context_expr)
            case _:
                pass
        return hoisting.before

    def _refuse(self, node: ast.AST, place: _Place) -> None:
        """Refuse macros as values in a kernel."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                macro = self.named(part.func, place)
                if macro is not None:
                    raise self.source.error(
                        part,
                        f"{macro.name!r} is a macro, which gives no value in a prim_func",
                        "call it as a statement by itself, and give it a buffer to store in",
                    )

    # Calls

    def put(
        self, macro: Macro, call: ast.Call, place: _Place
    ) -> tuple[list[ast.stmt], ast.expr | None]:
        """The statements of a macro, and what it returns."""
        self._check(macro, call, place)
        self.source, moved = self.source.with_called(macro.source, macro.node, call)
        node = copy.deepcopy(macro.node)
        ast.increment_lineno(node, moved)
        count = self._calls.get(macro, 0)
        self._calls[macro] = count + 1
        given, taken = self._given(macro, call, place), bound_names(node.body)
        params = {a.arg for a in params_of(node)}
        changed = set() if self._kernel else taken & params
        renamed = {name: self._free(name) for name in sorted((taken - params) | changed)}
        self._bound |= set(renamed.values())
        if macro.hygienic:
            renamed |= self._meanings(macro, call)
        defaults = Replacing(self.source, {}, renamed)
        args: dict[str, ast.expr] = {}
        for name, value in given.items():
            if not isinstance(value, Written):
                args[name] = value
                continue
            args[name] = defaults.visit(copy.deepcopy(value.node))
            ast.increment_lineno(args[name], moved)
        before = self._bind(node, args, changed, renamed)
        stand_for = {k: v for k, v in args.items() if k not in changed}
        replacing = Replacing(self.source, stand_for, renamed)
        body = [*before, *(replacing.visit(part) for part in node.body)]
        body = decided(body, Known(self.source, [self.names, *self._captured], self._bound))
        if count:
            _number_blocks(body, count)
        local = macro.local
        if not macro.hygienic:
            inner = _Place(place.visible, place.macros, place.depth + 1)
        elif local is not None:
            inner = _Place(local.visible, local.macros, place.depth + 1)
        else:
            inner = _Place(depth=place.depth + 1)
        return self._returned(macro, call, self._suite(body, inner))

    def _check(self, macro: Macro, call: ast.Call, place: _Place) -> None:
        if macro.spelling not in self._spellings:
            ours = "TVMScript" if SCRIPT not in self._spellings else "unity.script"
            raise self.source.error(
                call, f"{macro.name!r} is a macro of {macro.spelling}, this function is {ours}"
            )
        wanted = TVMSCRIPT.get(macro.spelling)
        if wanted is not None and (wanted == "kernel") != self._kernel:
            where = "prim_func" if wanted == "kernel" else "R.function"
            raise self.source.error(
                call, f"{macro.name!r} is a macro of {macro.spelling}: it belongs in a {where}"
            )
        if place.depth >= _DEEPEST:
            raise self.source.error(
                call,
                f"the macro {macro.name!r} calls itself more than {_DEEPEST} deep",
                "a macro is put in place where it is called: what ends that must be a condition "
                "on numbers and texts that are known here",
            )

    def _given(self, macro: Macro, call: ast.Call, place: _Place) -> dict[str, ast.expr | Written]:
        """What each parameter stands for."""
        signature = macro.signature()
        named = [Named(k.arg, k.value, self.source.span(k)) for k in call.keywords]
        for arg in call.args:
            if isinstance(arg, ast.Starred):
                raise self.source.error(arg, f"{macro.name}: * can't be used here", signature.usage)
        bound = signature.bind(call.args, named, self.source.span(call)).named
        found: dict[str, ast.expr | Written] = {}
        for param in signature.params:
            value = bound.get(param.name, param.default)
            assert isinstance(value, ast.expr | Written)
            other = None if isinstance(value, Written) else self.named(value, place)
            if other is not None:
                assert isinstance(value, ast.expr)
                value = ast.copy_location(
                    ast.Name(self._meaning(other.name, other), ast.Load()), value
                )
            found[param.name] = self._number(value) if isinstance(value, ast.BinOp) else value
        return found

    def _number(self, node: ast.expr) -> ast.expr:
        """Arithmetic of numbers that are written out, as their result."""
        if read_names([node]):
            return node
        try:
            value = Evaluator(self.source, Scope(())).value(node)
        except UnityError:
            return node
        if not isinstance(value, int | float):
            return node
        return ast.copy_location(ast.Constant(value), node)

    def _meanings(self, macro: Macro, call: ast.Call) -> dict[str, str]:
        """New names for those that mean something else at the call."""
        found: dict[str, str] = {}
        local = macro.local
        for name in free_names(macro.node):
            if local is not None and (name in local.visible or name in local.macros):
                continue
            meant, here = macro.lookup(name), self._lookup(name)
            hidden = name in self._bound and name not in self.names
            if meant is MISSING and (hidden or here is not MISSING):
                raise UnityError(
                    f"unknown name {name!r} in the macro {macro.name!r}",
                    self.source.span(call),
                    "its names are those of its definition: give it as an argument, or say "
                    f"@{macro.spelling}(hygienic=False)",
                )
            if meant is not MISSING and (hidden or meant is not here):
                found[name] = self._meaning(name, meant)
        return found

    def _bind(
        self,
        node: ast.FunctionDef,
        args: dict[str, ast.expr],
        changed: set[str],
        renamed: dict[str, str],
    ) -> list[ast.stmt]:
        """Names for what a graph's macro reads several times, or gives another value."""
        if self._kernel:
            return []
        before: list[ast.stmt] = []
        for name, value in list(args.items()):
            uses = [p for n in node.body for p in ast.walk(n) if isinstance(p, ast.Name)]
            often = sum(p.id == name for p in uses) > 1
            computed = any(isinstance(p, ast.Call) for p in ast.walk(value))
            if name not in changed and not (often and computed):
                continue
            new = renamed[name] if name in changed else self._free(name)
            self._bound.add(new)
            target = ast.copy_location(ast.Name(new, ast.Store()), value)
            before.append(ast.copy_location(ast.Assign([target], value), value))
            args[name] = ast.copy_location(ast.Name(new, ast.Load()), value)
        return before

    def _returned(
        self, macro: Macro, call: ast.Call, body: list[ast.stmt]
    ) -> tuple[list[ast.stmt], ast.expr | None]:
        value: ast.expr | None = None
        if body and isinstance(last := body[-1], ast.Return):
            value, body = last.value, body[:-1]
            if self._kernel:
                raise self.source.error(
                    last,
                    "a macro gives no value in a prim_func",
                    "store into a buffer that it is given",
                )
        for left in exits(body):
            raise self.source.error(left, "a macro is left at its end", "return stands there, once")
        if value is None and macro.spelling == "R.macro":
            raise self.source.error(call, f"the macro {macro.name!r} ends without a return")
        return body, value


class _Hoisting(ast.NodeTransformer):
    """Puts what macros return in place of their calls in a graph function's expression."""

    def __init__(self, expander: Expander, place: _Place) -> None:
        self._expander = expander
        self._place = place
        self.before: list[ast.stmt] = []

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        macro = self._expander.named(node.func, self._place)
        if macro is None:
            return node
        body, value = self._expander.put(macro, node, self._place)
        if value is None:
            raise self._expander.source.error(
                node, f"the macro {macro.name!r} gives no value", "end it with a return"
            )
        self.before += body
        return value


def _number_blocks(nodes: Sequence[ast.stmt], count: int) -> None:
    """Give blocks the name that they have in the so-manieth copy of a macro."""
    for node in nodes:
        for part in ast.walk(node):
            match part:
                case ast.Call(args=[ast.Constant(str() as name), *_]) if (
                    ast.unparse(part.func) in _BLOCKS and name
                ):
                    part.args[0] = ast.copy_location(ast.Constant(f"{name}_{count}"), part.args[0])
                case _:
                    pass


def expanded(
    source: Source,
    node: ast.FunctionDef,
    captured: Sequence[Mapping[str, object]],
    kernel: bool,
) -> tuple[Source, ast.FunctionDef, Sequence[Mapping[str, object]]]:
    """A function in our language without macros, the files it is from then, and what it sees.

    Raises:
        UnityError: As `Expander.function`.
    """
    expander = Expander(source, captured)
    made = expander.function(node, kernel)
    return expander.source, made, [expander.names, *captured] if expander.names else captured
