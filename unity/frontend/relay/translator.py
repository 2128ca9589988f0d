"""From Relay's syntax to a module of ours: `translate`.

Expressions are walked with a stack of generators, as chains of them are thousands deep: each step
asks for the values of the expressions that it needs. A node that several hold is translated once
in each body that it stands in. Functions are put in place where they are called, but for those
that call themselves (`lifting.py`), so that closures and functions of functions need no run time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TypeAlias

import numpy as np

from unity.errors import InternalError, UnityError, UnsupportedError
from unity.frontend.emission import Gap
from unity.ir import graph
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dynamic
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.symbols.input_dims import changed_inputs, check_form
from unity.ir.types import Type
from unity.op.builder import GraphBuilder, identifier
from unity.op.infer import infer_type

from . import syntax
from .applying import Applied, apply
from .branches import branch
from .calls import operator_call
from .examples import FORMS, Example, example_of, form_of, holds_declared
from .lifting import Lifted
from .matching import constructed, match
from .operators.refused import REFUSED
from .operators.table import CONVERTERS
from .record import WISHES, Record
from .recursion import recursive_globals
from .references import reference
from .relay_call import RelayCall
from .schema import signature
from .tail_calls import with_loops
from .types import contradiction, is_first_order, refined, type_of
from .values import (
    Cell,
    Closure,
    Data,
    Failure,
    Fields,
    Frame,
    Lacking,
    Scope,
    Value,
    depth_of,
    described,
    is_real,
    may_be,
    packed,
    tupled,
)

Steps: TypeAlias = "Generator[tuple[syntax.Expr, Scope], Value, Value]"
"""What an expression takes: it asks for others' values, and returns its own."""
DEEPEST_RESULT = 150
"""How many constructors may stand one in another in what an entry gives, as types of
executables have a limit."""
_OF_NUMBERS = (ValueError, IndexError, OverflowError)


def translate(
    module: syntax.Module,
    *,
    params: Mapping[str, Array] | None = None,
    dynamic: Dynamic | None = None,
    examples: Mapping[str, object] | None = None,
    name: str = "main",
) -> IRModule:
    """The module of a Relay module.

    Args:
        module: What a reader gave.
        params: Values for parameters of the entry, by name, beside those that the module has.
        dynamic: Dims of inputs to change before anything is translated, as in `unity.compile`.
        examples: Of inputs of declared types, by name, how far they go (`examples.py`).
        name: The entry: the function that is translated, with those that it calls.

    Returns:
        A module with the entry as ``main``, and with its functions that call themselves.

    Raises:
        UnityError: The module is ill-formed.
        UnsupportedError: It uses what is refused; everything is listed.
        InternalError: Something of Unity's own broke; the message names the operator.
    """
    if name not in module.functions:
        known = ", ".join(f"@{n}" for n in module.functions)
        raise UnityError(f"{module.file} has no function @{name}", hint=f"it has {known or 'none'}")
    values = {**module.params, **(params or {})}
    return Translator(module).module(name, values, dynamic, examples)


class Translator:
    """Translates one module.

    Attributes:
        source: Relay's module.
        functions: Functions of ours that were made beside the entry.
        applied: What is known of functions that are called.
        gaps: What was found missing.
        record: What became of each call of an operator.
        met: What each expression stood for that was translated, where it was last.
    """

    def __init__(self, source: syntax.Module) -> None:
        self.source = source
        self.functions: dict[str, graph.Function] = {}
        self.signatures: dict[str, Type] = {}
        self.gaps: list[str] = []
        self.record = Record()
        self.met: dict[syntax.Expr, Value] = {}
        self.recursive = recursive_globals(source)
        self.globals: dict[str, Closure] = {}
        self.lifted: dict[syntax.Function, Lifted] = {}
        self.applied = Applied()

    # Functions.

    def builder(self) -> GraphBuilder:
        """A builder that sees the functions made so far, and those to come."""
        found = GraphBuilder()
        found.signatures = self.signatures
        return found

    def module(
        self,
        name: str,
        params: Mapping[str, Array],
        dynamic: Dynamic | None = None,
        examples: Mapping[str, object] | None = None,
    ) -> IRModule:
        """The module of an entry, with values for some of its parameters."""
        function = self.source.functions[name]
        builder = self.builder()
        scope = Scope(builder, Frame(name))
        unknown = params.keys() - {p.name for p in function.params}
        if unknown:
            raise UnityError(
                f"@{name} has no parameter {', '.join(sorted(map(repr, unknown)))}",
                function.span,
                f"its parameters are {', '.join(p.name for p in function.params)}",
            )
        kinds: dict[str, Type] = {}
        known = self._examples(function, params, examples or {}, builder)
        for param in function.params:
            if param.name in params:
                scope.vars[param] = self._bound(param, params[param.name])
            elif param.name in known:
                kinds[param.name] = known[param.name].type
            else:
                kinds[param.name] = self._param_type(param, builder)
        for param, kind in zip(
            (p for p in function.params if p.name in kinds),
            _changed(kinds, dynamic).values(),
            strict=True,
        ):
            var = builder.param(param.name, kind, param.span)
            example = known.get(param.name)
            scope.vars[param] = var if example is None else example.value(var, builder)
        value = self.value(function.body, scope)
        if self.gaps:
            gaps = list(dict.fromkeys(self.gaps))
            raise UnsupportedError(f"{self.source.file} needs what Unity does not implement", gaps)
        if function.result is not None:
            value = self.declared(value, function.result, f"the result of @{name}", scope)
        result = self._result(value, name, function)
        wishes = self.record.wishes()
        asked: dict[str, AttrValue] = {WISHES: wishes} if wishes else {}
        if known:
            trees: list[AttrValue] = [
                (i, *known[n].nodes) for i, n in enumerate(kinds) if n in known
            ]
            asked["tree_inputs"] = tuple(trees)
        if isinstance(value, Data | Fields):
            asked["tree_result"] = form_of(value)
        attrs = Attrs(source=self.source.file, input_names=tuple(kinds), **asked)
        made = builder.finish(result, attrs=attrs, span=function.span)
        return with_loops(IRModule({"main": made, **self.functions}))

    def _examples(
        self,
        function: syntax.Function,
        params: Mapping[str, Array],
        examples: Mapping[str, object],
        builder: GraphBuilder,
    ) -> dict[str, Example]:
        """How inputs are taken apart that have an example."""
        wanted = {p.name: p for p in function.params if holds_declared(p.type)}
        for name in examples:
            if name not in wanted or name in params:
                raise UnityError(
                    f"an example is given for {name!r}, which is no input of a declared type",
                    function.span,
                    f"those that are: {', '.join(wanted) or 'none'}",
                )
        return {
            name: example_of(wanted[name], value, self.source, builder.fresh)
            for name, value in examples.items()
        }

    def _bound(self, param: syntax.Var, array: Array) -> graph.Constant:
        value = np.asarray(array, order="C")  # which leaves a scalar one
        constant = graph.Constant(value, param.name)
        if param.type is not None:
            wrong = contradiction(param.type, infer_type(constant, {}))
            if wrong is not None:
                raise UnityError(f"the parameter {param.name!r} is {wrong}", param.span)
        return constant

    def _param_type(self, param: syntax.Var, builder: GraphBuilder) -> Type:
        if holds_declared(param.type):
            raise UnityError(
                f"the parameter {param.name!r} of the entry is of a declared type",
                param.span,
                "how far lists and trees go is followed while translating: say it by an example, "
                f"unity.load(path, examples={{{param.name!r}: ...}}); {FORMS}. unity.relay.vm "
                "compiles for each form that it is called with",
            )
        if not is_first_order(param.type):
            raise UnityError(
                f"the parameter {param.name!r} of the entry is declared with no type of tensors",
                param.span,
                "write its type: Tensor[(1, 3), float32]",
            )
        assert param.type is not None
        return type_of(param.type, identifier(param.name), builder.fresh)

    def _result(self, value: Value, name: str, function: syntax.Function) -> graph.Expr:
        if isinstance(value, Failure):
            raise UnityError(value.what, value.span)
        if (depth := depth_of(value)) > DEEPEST_RESULT:
            raise UnityError(
                f"@{name} gives a value that is {depth} constructors deep, "
                f"and results are {DEEPEST_RESULT} deep at most",
                function.span,
                "stack what a long list holds into one tensor, by @foldl",
            )
        found = packed(value)
        if found is None:
            raise UnityError(f"@{name} gives {described(value)}", function.span)
        if isinstance(found, graph.Tuple) and not found.fields:
            raise UnityError(f"@{name} gives nothing", function.span)
        return found

    # Expressions.

    def value(self, expr: syntax.Expr, scope: Scope) -> Value:
        """What an expression stands for in a scope."""
        stack: list[tuple[syntax.Expr, Scope, Steps]] = []
        wanted: tuple[syntax.Expr, Scope] | None = (expr, scope)
        found: Value | None = None
        while True:
            if wanted is not None:
                inner, where = wanted
                found = where.find(inner)
                if found is None:
                    stack.append((inner, where, self._steps(inner, where)))
                else:
                    self.met[inner] = found
                wanted = None
            if not stack:
                assert found is not None
                return found
            inner, where, steps = stack[-1]
            try:
                wanted = next(steps) if found is None else steps.send(found)
                found = None
            except StopIteration as stop:
                found = stop.value
                assert found is not None
                where.values[inner] = self.met[inner] = found
                stack.pop()

    def _steps(self, expr: syntax.Expr, scope: Scope) -> Steps:
        match expr:
            case syntax.Var():
                raise UnityError(f"the variable %{expr.name} is bound nowhere", expr.span)
            case syntax.Constant():
                return graph.Constant(expr.value, None, expr.span)
            case syntax.GlobalVar():
                return self._global(expr)
            case syntax.Function():
                return Closure(expr, scope, "fn")
            case syntax.Tuple():
                fields: list[Value] = []
                for f in expr.fields:
                    fields.append((yield f, scope))
                return tupled(fields)
            case syntax.TupleGetItem():
                value = yield expr.tuple, scope
                return self._field(value, expr, scope)
            case syntax.Let():
                value = yield from self._let(expr, scope)
                if isinstance(value, Failure):
                    return value
                return (yield expr.body, scope)
            case syntax.If():
                return (yield from branch(self, expr, scope))
            case syntax.Call():
                return (yield from self._call(expr, scope))
            case syntax.Constructor() if not self.constructor(expr)[1].fields:
                return constructed(self, expr, [], expr)
            case syntax.Op() | syntax.Constructor():
                return Closure(self._expanded(expr), scope, expr.name)
            case syntax.Match():
                return (yield from match(self, expr, scope))
            case syntax.RefCreate() | syntax.RefRead() | syntax.RefWrite():
                return (yield from reference(self, expr, scope))

    def lacking(self, what: str, expr: syntax.Expr) -> Lacking:
        """Note that something is missing, and where; what stands for its value."""
        place = f"{expr.span}: " if expr.span is not None else ""
        self.gaps.append(f"{place}{what}")
        return Lacking()

    def _global(self, var: syntax.GlobalVar) -> Closure:
        if var.name not in self.source.functions:
            raise UnityError(f"the module has no function @{var.name}", var.span)
        if var.name not in self.globals:
            scope = Scope(self.builder(), Frame(var.name))
            self.globals[var.name] = Closure(self.source.functions[var.name], scope, var.name)
        return self.globals[var.name]

    def constructor(
        self, expr: syntax.Constructor
    ) -> tuple[syntax.TypeDeclaration, syntax.ConstructorDeclaration, int]:
        """The declaration of a constructor, and its place."""
        try:
            return self.source.constructor(expr.name)
        except KeyError:
            raise UnityError(f"no type has the constructor {expr.name}", expr.span) from None

    def _expanded(self, expr: syntax.Op | syntax.Constructor) -> syntax.Function:
        """An operator or a constructor as a function that calls it."""
        if isinstance(expr, syntax.Op):
            known = signature(expr.name)
            count = len(known.arguments or ()) - known.optional if known is not None else 0
        else:
            count = len(self.constructor(expr)[1].fields)
        params = tuple(syntax.Var(f"a{i}") for i in range(count))
        if isinstance(expr, syntax.Op):
            call = operator_call(expr, params, {}, expr.span)
        else:
            call = syntax.Call(expr, params, {}, span=expr.span)
        return syntax.Function(params, call, span=expr.span)

    def _field(self, value: Value, expr: syntax.TupleGetItem, scope: Scope) -> Value:
        match value:
            case Lacking() | Failure():
                return value
            case graph.Tuple(fields) | Fields(fields):
                if not 0 <= expr.index < len(fields):
                    raise UnityError(f"a tuple of {len(fields)} has no .{expr.index}", expr.span)
                return fields[expr.index]
            case Closure() | Data() | Cell():
                raise UnityError(f"{described(value)} has no fields", expr.span)
            case _:
                return scope.builder.emit(graph.TupleGet(value, expr.index, expr.span))

    def _let(self, expr: syntax.Let, scope: Scope) -> Steps:
        value: Value
        if isinstance(expr.value, syntax.Function):
            value = Closure(expr.value, scope, expr.var.name)
        else:
            value = yield expr.value, scope
        if expr.var.type is not None:
            value = self.declared(value, expr.var.type, f"%{expr.var.name}", scope)
        scope.vars[expr.var] = value
        return value

    def declared(self, value: Value, kind: syntax.Type, what: str, scope: Scope) -> Value:
        """A value that the source declares a type for: what is unknown of its shape is checked."""
        if isinstance(value, Data) and not may_be(value, kind):
            raise UnityError(f"{what} is {described(value)}", kind.span)
        if not is_real(value):
            return value
        found = infer_type(value, self.signatures)
        wrong = contradiction(kind, found)
        if wrong is not None:
            raise UnityError(f"{what} is {wrong}", kind.span)
        more = refined(kind, found)
        return value if more is None else scope.builder.match_cast(value, more, None, kind.span)

    # Calls.

    def _call(self, expr: syntax.Call, scope: Scope) -> Steps:
        values: list[Value] = []
        if isinstance(expr.callee, syntax.Op):
            for a in expr.arguments:
                values.append((yield a, scope))
            return self._operator(expr, expr.callee.name, values, scope)
        if isinstance(expr.callee, syntax.Constructor):
            for a in expr.arguments:
                values.append((yield a, scope))
            return constructed(self, expr.callee, values, expr)
        callee = yield expr.callee, scope
        for a in expr.arguments:
            values.append((yield a, scope))
        match callee:
            case Lacking() | Failure():
                return callee
            case Closure():
                return (yield from apply(self, callee, values, expr, scope))
            case _:
                raise UnityError("calls what is no function", expr.span)

    def _operator(self, expr: syntax.Call, name: str, values: list[Value], scope: Scope) -> Value:
        operands: list[graph.Expr] = []
        for value in values:
            if isinstance(value, Lacking | Failure):
                return value
            if not is_real(value):
                raise UnityError(f"{name} takes tensors, and this is {described(value)}", expr.span)
            operands.append(value)
        converter = CONVERTERS.get(name)
        if converter is None:
            reason = REFUSED.get(name, "no operator of Relay that is known")
            return self.lacking(f"{name} ({reason})", expr)
        sizes = scope.frame.sizes
        call = RelayCall(expr, name, operands, scope.builder, scope.broadcasts, sizes)
        try:
            found = converter(call)
        except Gap as gap:
            return self.lacking(f"{name}: {gap}", expr)
        except (UnsupportedError, InternalError, OSError, MemoryError):
            raise
        except UnityError as error:
            own = error.message.removeprefix(f"{name}: ")
            raise UnityError(f"{name}: {own}", expr.span, error.hint) from error
        except _OF_NUMBERS as error:
            raise UnityError(f"{name}: its operands don't fit: {error}", expr.span) from error
        except Exception as error:
            raise InternalError(
                f"a bug of Unity, which should have told what is wrong: {name}: "
                f"{type(error).__name__}: {error}",
                expr.span,
                "please report it, with the model",
            ) from error
        if call.unread:
            names = ", ".join(sorted(call.unread))
            return self.lacking(f"{name}: the attribute {names}", expr)
        self.record.note(call, expr, scope.frame.name)
        return found


def _changed(kinds: dict[str, Type], dynamic: Dynamic | None) -> Mapping[str, Type]:
    if dynamic is None:
        return kinds
    check_form(dynamic)
    own = {identifier(n): n for n in reversed(kinds)}  # parameters are called by identifiers
    wanted = {n if n in kinds else own.get(n, n): change for n, change in dynamic.items()}
    return changed_inputs(kinds, wanted)
