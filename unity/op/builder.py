"""Building a graph function binding by binding, normalized and typed as it grows.

Importers, passes and the parser stand on this: nested expressions are taken apart into A-normal
form, every binding gets its inferred type, names are made unique, data-dependent sizes get fresh
symbols.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from unity.errors import Span, UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import Symbol, dim
from unity.ir.dtype import SHORT_NAMES
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Call,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Literal,
    MatchCast,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
)
from unity.ir.types import FuncType, Type
from unity.ir.visit import bodies_of, map_expr, type_symbols

from .call import call_op
from .effects import ASSERT, EFFECTS, PRINT
from .infer import infer_type
from .table import OPS


class GraphBuilder:
    """Grows one body; `child` grows the body of a branch, a loop or a closure within it.

    Args:
        signatures: The types of the module's functions.
        dataflow: Whether pure stretches become dataflow blocks.
    """

    def __init__(
        self, signatures: Mapping[str, Type] | None = None, *, dataflow: bool = True
    ) -> None:
        self.signatures: dict[str, Type] = dict(signatures or {})
        self.params: list[Var] = []
        self._dataflow = dataflow
        self._blocks: list[BindingBlock] = []
        self._bindings: list[Binding] = []
        self._is_dataflow = dataflow
        self._forced = False
        self._names: dict[str, int] = {}  # and the last number behind each
        self._symbols: set[str] = set()

    def child(self) -> GraphBuilder:
        """A builder of a nested body: names and symbols stay unique over both."""
        inner = GraphBuilder(self.signatures, dataflow=self._dataflow)
        inner._names, inner._symbols = self._names, self._symbols
        return inner

    def trial(self) -> GraphBuilder:
        """A builder of a nested body that is thrown away: the names it gives out stay free."""
        inner = self.child()
        inner._names, inner._symbols = dict(self._names), set(self._symbols)
        return inner

    def param(self, name: str, kind: Type, span: Span | None = None) -> Var:
        """A parameter, in order."""
        var = self.new_var(name, kind, span)
        self.params.append(var)
        return var

    def new_var(self, name: str, kind: Type, span: Span | None = None) -> Var:
        """A variable under a name that nothing else here has (a loop's state, say)."""
        self._symbols.update(s.name for s in type_symbols(kind))
        return Var(self.unique(name), kind, span)

    def unique(self, name: str) -> str:
        """An identifier like `name` that was not given out before."""
        base = identifier(name)
        found, count = base, self._names.get(base, 0)
        while found in self._names:
            count += 1
            found = f"{base}_{count}"
        self._names[found] = 0
        self._names[base] = count
        return found

    def fresh(self, name: str, *, min: int = 0) -> Symbol:
        """A symbol like `name` that nothing here mentions, which is `min` at least."""
        base = identifier(name)
        found, count = base, 0
        while found in self._symbols:
            count += 1
            found = f"{base}_{count}"
        self._symbols.add(found)
        return dim(found, min=min)

    def has_symbol(self, name: str) -> bool:
        """Whether something here mentions a symbol of this name, or may."""
        return name in self._symbols

    def reserve_symbols(self, *names: str) -> None:
        """Keep `fresh` from giving out these names."""
        self._symbols.update(names)

    def op(self, name: str, *args: object, span: Span | None = None, **attrs: object) -> Var:
        """Bind a call of an operator: `call_op`, then `emit`."""
        call = call_op(name, *args, span=span, signatures=self.signatures, **attrs)
        return self.emit(call, None, span)

    @contextmanager
    def dataflow_block(self) -> Iterator[None]:
        """What is bound inside forms a dataflow block of its own, as a program says so itself."""
        self._close()
        outer, self._forced, self._is_dataflow = self._forced, True, True
        yield
        self._close()
        self._forced = outer
        self._is_dataflow = self._dataflow

    def emit(
        self,
        expr: Expr,
        name: str | None = None,
        span: Span | None = None,
        kind: Type | None = None,
    ) -> Var:
        """Bind an expression; a variable without a new name is returned as it is.

        `kind` is a type declared for it, in place of the inferred one.

        Raises:
            UnityError: The expression is ill-typed.
        """
        if isinstance(expr, Var) and name is None:
            return expr
        value = map_expr(expr, self.atom)
        if (
            isinstance(value, Call)
            and isinstance(value.callee, Op)
            and value.callee.name in EFFECTS
        ):
            told = value.args[-1]
            if not isinstance(told, Tuple):  # printed, its fields would be another tuple's
                raise UnityError(
                    f"{value.callee.name} takes its values one by one, got a variable",
                    span or expr.span,
                    "give a Tuple of them, whose fields are TupleGet(t, 0) ...",
                )
        if kind is None:
            kind = infer_type(value, self.signatures, self.fresh)
        where = span or expr.span
        var = self.new_var(name or _hint(value), kind, where)
        flows = self._may_flow(value)
        if self._forced and not flows and isinstance(value, Call):
            raise UnityError(
                "a call with effects can't stand in a dataflow block, which is pure",
                where,
                "write it before or behind the block",
            )
        self._append(VarBinding(var, value, where), flows)
        return var

    def match_cast(
        self, value: Expr, kind: Type, name: str | None = None, span: Span | None = None
    ) -> Var:
        """Bind a value asserted at run time to have a type; its new symbols are in scope after."""
        atom = self.atom(value)
        var = self.new_var(name or _hint(atom), kind, span)
        self._append(MatchCast(var, atom, kind, span), True)
        return var

    def atom(self, expr: Expr) -> Expr:
        """The expression itself if it may be an operand (a tuple of atoms may), else a variable."""
        match expr:
            case Var() | Constant() | ShapeValue() | PrimValue() | Literal() | FunctionRef() | Op():
                return expr
            case Tuple():
                return map_expr(expr, self.atom)
            case _:
                return self.emit(expr)

    def body(self, result: Expr) -> Body:
        """The body built so far, giving `result`."""
        atom = self.emit(result) if isinstance(result, Tuple) else self.atom(result)
        self._close()
        return Body(tuple(self._blocks), atom)

    def finish(
        self,
        result: Expr,
        params: Sequence[Var] | None = None,
        *,
        result_type: Type | None = None,
        pure: bool | None = None,
        attrs: Attrs = NO_ATTRS,
        span: Span | None = None,
    ) -> Function:
        """The function built so far.

        Args:
            result: What it returns.
            params: Its parameters; by default those made by `param`.
            result_type: Its declared type; by default the result's.
            pure: Whether it is pure; by default whether its bindings have no effects.
            attrs: Its attributes.
            span: Where it is written.

        Raises:
            UnityError: It is declared pure and has an effect.
        """
        given = tuple(self.params if params is None else params)
        body = self.body(result)
        found = result_type
        if found is None:
            found = infer_type(body.result, self.signatures)
        effect = self._effect_in(body)
        if effect is not None and pure:
            raise UnityError(
                f"the function is declared pure, but {_doing(effect.callee)}: "
                "calls of a pure function may be left out",
                effect.span or span,
                "declare it pure=False",
            )
        return Function(given, body, found, effect is None if pure is None else pure, attrs, span)

    def _append(self, binding: Binding, flows: bool) -> None:
        wanted = self._forced or (self._dataflow and flows)
        if wanted != self._is_dataflow:
            self._close()
            self._is_dataflow = wanted
        self._bindings.append(binding)

    def _close(self) -> None:
        if self._bindings:
            self._blocks.append(BindingBlock(tuple(self._bindings), self._is_dataflow))
            self._bindings = []

    def _may_flow(self, value: Expr) -> bool:
        """Whether a binding may be in a dataflow block: pure, and no control flow."""
        match value:
            case Call():
                return self._is_pure(value)
            case If() | While() | Scan() | Function():
                return False
            case _:
                return True

    def _is_pure(self, call: Call) -> bool:
        if isinstance(call.callee, Op):
            return OPS[call.callee.name].pure
        kind = infer_type(call.callee, self.signatures)
        return isinstance(kind, FuncType) and kind.pure

    def _effect_in(self, body: Body) -> Call | None:
        """The first call with effects outside that a body runs itself: closures may have some.

        What it does to memory of its own is none.
        """
        for block in body.blocks:
            for binding in block.bindings:
                value = binding.value
                if isinstance(value, Call):
                    op = value.callee.name if isinstance(value.callee, Op) else None
                    if op in EFFECTS or (op is None and not self._is_pure(value)):
                        return value
                for inner in () if isinstance(value, Function) else bodies_of(value):
                    found = self._effect_in(inner)
                    if found is not None:
                        return found
        return None


def identifier(name: str) -> str:
    """A Python identifier close to any text: ``layer1/conv:0`` becomes ``layer1_conv_0``.

    >>> identifier("4195"), identifier("")
    ('v4195', 'v')
    """
    text = plain_identifier(name)
    return f"{text}_" if text in _RESERVED else text


def required_identifier(what: str, name: str) -> str:
    """A name that programs can be printed with.

    Args:
        what: What has it, for the message: ``a function``.
        name: It.

    Raises:
        UnityError: It is no identifier, or a word of the language.
    """
    if identifier(name) != name:
        raise UnityError(
            f"{what} can't be called {name!r}",
            hint=f"a name of Python that is no word of the language, like {identifier(name)}",
        )
    return name


def plain_identifier(name: str) -> str:
    """An identifier close to any text, which may be a word that the language uses."""
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "v"
    return f"v{text}" if text[0].isdigit() else text


_RESERVED = frozenset(
    {*keyword.kwlist, *SHORT_NAMES, "R", "T", "dim", "script", "min", "max", "print", "range"}
    | {"Tensor", "Buffer"}
)


def _doing(callee: Expr) -> str:
    """What a callee with effects does, in a message."""
    match callee:
        case Op(name) if name == PRINT:
            return "it prints"
        case Op(name) if name == ASSERT:
            return "it asserts"
        case Op(name) | FunctionRef(name) | Var(name):
            return f"it calls {name}, which has effects"
        case _:
            return "it calls what has effects"


def _hint(value: Expr) -> str:
    match value:
        case Call(Op("print")):
            return "printed"
        case Call(Op("assert_op")):
            return "checked"
        case Call(Op(name)):
            return name.rpartition(".")[2]
        case Call(FunctionRef(name)) | Call(Var(name)):
            return f"{name}_out"
        case Tuple():
            return "pair" if len(value.fields) == 2 else "items"
        case TupleGet(Var(name), index):
            return f"{name}_{index}"
        case Constant(_, str() as name):
            return name
        case Var(name):
            return name
        case _:
            return "lv"
