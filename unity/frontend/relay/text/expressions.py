"""Expressions in Relay's text: a recursive descent that loops over lets, bindings and operators.

What nests in blocks and brackets nests in calls of Python here, within its limit; what only follows
one another (a thousand lets, a thousand ``%3 = ...;``) does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.errors import Span, UnityError
from unity.ir.dtype import Array

from .. import syntax
from ..calls import operator_call
from ..schema.dtypes import named
from ..schema.legacy import is_operator
from .cursor import Cursor
from .lexer import LOCAL, NAME, NUMBER, PROJECTION
from .literals import constant, number, read_only, said_of
from .metadata import Metadata
from .names import Names
from .types import listed, meta_reference, type_of, type_params
from .values import named_attribute, starts_attribute
from .variables import variable

_INFIX: dict[str, tuple[int, str]] = {
    "*": (12, "multiply"),
    "/": (12, "divide"),
    "+": (10, "add"),
    "-": (10, "subtract"),
    "<": (8, "less"),
    "<=": (8, "less_equal"),
    ">": (8, "greater"),
    ">=": (8, "greater_equal"),
    "==": (7, "equal"),
    "!=": (7, "not_equal"),
}
_REFERENCES = {"ref": 1, "ref_read": 1, "ref_write": 2}
_STATEMENTS = ("let", "free_var")


@dataclass(slots=True)
class Expressions:
    """Reads expressions.

    Attributes:
        cursor: Where it is.
        names: What is known there.
        metadata: What ``meta`` stands for.
        before_0_8: Whether the text is of 0.0.4, which TVM 0.6 was the last to write.
        free: The variables that ``free_var`` declared.
        ignored: What was read and is in no expression.
    """

    cursor: Cursor
    names: Names
    metadata: Metadata
    before_0_8: bool
    free: list[syntax.Var]
    ignored: list[syntax.Ignored]

    # ---- what follows one another

    def sequence(self) -> syntax.Expr:
        """Statements and the expression that is their value; in a block of its own."""
        with self.names.block():
            return self._sequence()

    def _sequence(self) -> syntax.Expr:
        cursor = self.cursor
        lets: list[tuple[syntax.Var, syntax.Expr, int]] = []
        while True:
            first = cursor.at
            if cursor.take("let"):
                lets.append((*self._let(), first))
            elif cursor.take("free_var"):
                self._free_var()
            elif cursor.kind == LOCAL and cursor.following() == "=":
                self._graph_binding()
            else:
                value = self.binary(0)
                if not cursor.take(";"):
                    break
                cursor.take(";")  # 0.0.4 ends what nobody reads by two
                lets.append((syntax.Var("_", None, value.span), value, first))
        body = value
        for var, value, first in reversed(lets):
            body = syntax.Let(var, value, body, cursor.span(first))
        return body

    def _let(self) -> tuple[syntax.Var, syntax.Expr]:
        cursor = self.cursor
        var = self._variable("the name of a variable, as %x")
        # A function may call itself; any other value still sees what had the name before.
        recursive = cursor.following() == "fn" or self.names.find(var.name) is None
        cursor.expect("=", "after the name that let binds")
        if recursive:
            self.names.bind(var.name, var)
        value = self.binary(0)
        cursor.expect(";", "after the value of a let")
        self.names.bind(var.name, var)
        return var, value

    def _free_var(self) -> None:
        var = self._variable("the name of a free variable")
        self.names.bind(var.name, var)
        self.free.append(var)
        self.cursor.expect(";", "after a free variable")

    def _graph_binding(self) -> None:
        cursor = self.cursor
        name = cursor.text[1:]
        if name in self.names.blocks[-1] and name.isdigit():
            raise cursor.error(f"%{name} is bound twice")
        cursor.at += 2
        value = self.binary(0)
        cursor.expect(";", f"after the value of %{name}")
        self.names.bind(name, value)

    def _variable(self, wanted: str) -> syntax.Var:
        return variable(self.cursor, self.names, self.metadata, self.ignored, wanted)

    # ---- operators between

    def expression(self) -> syntax.Expr:
        """An expression, which may start with statements of its own."""
        cursor = self.cursor
        if cursor.text in _STATEMENTS or (cursor.kind == LOCAL and cursor.following() == "="):
            return self.sequence()
        return self.binary(0)

    def binary(self, least: int) -> syntax.Expr:
        """Operators between operands, those of a rank or above."""
        cursor, first = self.cursor, self.cursor.at
        left = self._unary()
        while True:
            row = _INFIX.get(cursor.text)
            subtracted = row is None and cursor.kind == NUMBER and cursor.text.startswith("-")
            if subtracted:  # `%x -1`: two tokens, but one meaning
                row = _INFIX["-"]
            if row is None or row[0] <= least:
                return left
            at = cursor.at
            cursor.at += 1
            operator = syntax.Op(row[1], cursor.span(at))
            if subtracted:
                cursor.give_back(NUMBER, cursor.tokens.texts[at][1:])
            right = self.binary(row[0])
            left = operator_call(operator, (left, right), {}, cursor.span(first))

    def _unary(self) -> syntax.Expr:
        cursor, first = self.cursor, self.cursor.at
        if not cursor.take("-"):
            return self._calls()
        operator = syntax.Op("negative", cursor.span(first))
        return operator_call(operator, (self._unary(),), {}, cursor.span(first))

    # ---- calls

    def _calls(self) -> syntax.Expr:
        """An atom, and what it is called with or projected to."""
        cursor, first = self.cursor, self.cursor.at
        found = self._atom()
        while True:
            if cursor.take("("):
                found = self._call(found, first)
            elif cursor.kind == PROJECTION:
                found = syntax.TupleGetItem(found, self._index(cursor.text[1:]), cursor.span(first))
                cursor.at += 1
            else:
                return found

    def _index(self, text: str) -> int:
        if len(text) > 6:
            raise self.cursor.error(f"no tuple has a field {text[:20]}")
        return int(text)

    def _call(self, callee: syntax.Expr, first: int) -> syntax.Call:
        cursor = self.cursor
        arguments: list[syntax.Expr] = []
        given: dict[str, syntax.AttrValue] = {}
        places: dict[str, Span] = {}
        while not cursor.take(")"):
            if starts_attribute(cursor):
                self._attribute(given, places)
            elif cursor.text == "meta" and cursor.kind == NAME and self._meta_is_attributes():
                start = cursor.at
                key, index = meta_reference(cursor)
                operator = callee.name if isinstance(callee, syntax.Op) else ""
                given |= self.metadata.attributes(key, index, cursor.span(start), operator)
            elif given:
                raise cursor.unexpected("an attribute (arguments stand before attributes)")
            else:
                arguments.append(self.expression())
            if not cursor.take(","):
                cursor.expect(")", "after the arguments of a call")
                break
        span = cursor.span(first)
        if isinstance(callee, syntax.Op):
            return operator_call(
                callee, tuple(arguments), given, span, places=places, before_0_8=self.before_0_8
            )
        return syntax.Call(callee, tuple(arguments), given, tuple(given), span)

    def _attribute(self, given: dict[str, syntax.AttrValue], places: dict[str, Span]) -> None:
        named_attribute(self.cursor, self.metadata, given, places)

    def _meta_is_attributes(self) -> bool:
        """Whether ``meta[relay.attrs.Conv2DAttrs][0]`` is next: attributes, not an argument."""
        cursor = self.cursor
        texts = cursor.tokens.texts
        return texts[min(cursor.at + 2, len(texts) - 1)].endswith("Attrs")

    # ---- atoms

    def _atom(self) -> syntax.Expr:
        cursor, first = self.cursor, self.cursor.at
        text = cursor.text
        match cursor.kind:
            case "local":
                return self._local()
            case "global":
                return self._global()
            case "number":
                said = said_of(cursor.source.text, cursor.tokens.end(cursor.at))
                value = constant(text, said)
                if value is None:
                    raise cursor.error(f"{text[:40]} is no number of its dtype")
                return self._stepped(value)
            case "name":
                return self._named()
            case _:
                pass
        if cursor.take("("):
            return self._parenthesized(first)
        if cursor.take("{"):
            found = self.sequence()
            cursor.expect("}", "after a block")
            return found
        if text == "[":
            return syntax.Constant(self._tensor(), cursor.span(first))
        raise cursor.unexpected("an expression")

    def _stepped(self, value: Array) -> syntax.Constant:
        self.cursor.at += 1
        return syntax.Constant(value, self.cursor.span(self.cursor.at - 1))

    def _local(self) -> syntax.Expr:
        cursor, first = self.cursor, self.cursor.at
        text = cursor.text[1:]
        found = self.names.longest(text)
        if found is None:
            raise cursor.error(f"%{text} is not bound here", self.names.close(text))
        value, rest = found
        if not rest:
            cursor.at += 1
            return value
        cut = cursor.tokens.end(first) - len(rest)
        cursor.at += 1
        for field in rest[1:].split("."):
            if rest[0] != "." or not field.isdecimal():
                raise cursor.source.error(
                    cut, cut + len(rest), f"expected a field, as .0, found {rest!r}"
                )
            value = syntax.TupleGetItem(value, self._index(field), cursor.span(first))
        return value

    def _global(self) -> syntax.Expr:
        cursor, first = self.cursor, self.cursor.at
        name = cursor.text[1:]
        if not self.names.is_function(name):
            raise cursor.error(f"the module has no function @{name}")
        cursor.at += 1
        return syntax.GlobalVar(name, cursor.span(first))

    def _named(self) -> syntax.Expr:
        cursor, first = self.cursor, self.cursor.at
        text = cursor.text
        if text == "meta":
            key, index = meta_reference(cursor)
            span = cursor.span(first)
            return syntax.Constant(self.metadata.constant(key, index, span), span)
        if text in _STATEMENTS:
            raise cursor.error(f"{text} stands where an operand must")
        following = cursor.following()
        cursor.at += 1
        if text in ("True", "False"):
            return syntax.Constant(read_only(np.array(text == "True")), cursor.span(first))
        if text == "fn":
            return self.function(first)
        if text == "if":
            return self._if(first)
        if text == "match":
            return self._match(first)
        if text in _REFERENCES and following == "(":
            return self._reference(text, first)
        if self.names.is_constructor(text):
            return syntax.Constructor(text, cursor.span(first))
        element = named(text)
        if element is not None and following == "(":
            value = constant(cursor.cast_number(), element)
            if value is None:
                raise UnityError(f"this is no number of the dtype {text}", cursor.span(first))
            return syntax.Constant(value, cursor.span(first))
        span = cursor.span(first)
        if following != "(" and not is_operator(text):  # a call tells what is called so instead
            raise UnityError(f"no operator and no constructor is called {text[:60]!r}", span)
        return syntax.Op(text, span)

    def _parenthesized(self, first: int) -> syntax.Expr:
        cursor = self.cursor
        fields = listed(cursor, ")", self.expression, "after an expression in parentheses")
        if len(fields) == 1 and cursor.tokens.texts[cursor.at - 2] != ",":
            return fields[0]
        return syntax.Tuple(fields, cursor.span(first))

    def _tensor(self) -> Array:
        """``[[1, 2], [3, 4]]``, which 0.0.4 has."""
        cursor, first = self.cursor, self.cursor.at

        def item() -> object:
            if cursor.take("["):
                return listed(cursor, "]", item, "after numbers")
            value = number(cursor.text) if cursor.kind == NUMBER else None
            if value is None:
                raise cursor.unexpected("a number")
            cursor.at += 1
            return value

        try:
            found = np.asarray(item())
        except (ValueError, OverflowError):
            raise UnityError("rows of different lengths", cursor.span(first)) from None
        wanted = np.dtype(np.int32 if found.dtype.kind == "i" else np.float32)
        return read_only(found.astype(wanted))

    # ---- functions and control

    def function(self, first: int) -> syntax.Function:
        """A function from its type parameters on."""
        cursor = self.cursor
        own = type_params(cursor)
        with self.names.block(own):
            params, attributes = self._params()
            result = type_of(cursor, self.names.types) if cursor.take("->") else None
            cursor.expect("{", "before the body of a function")
            body = self.sequence()
            cursor.expect("}", "after the body of a function")
        return syntax.Function(tuple(params), body, result, own, attributes, cursor.span(first))

    def _params(self) -> tuple[list[syntax.Var], dict[str, syntax.AttrValue]]:
        cursor = self.cursor
        params: list[syntax.Var] = []
        attributes: dict[str, syntax.AttrValue] = {}
        cursor.expect("(", "before the parameters of a function")
        while not cursor.take(")"):
            if starts_attribute(cursor):
                self._attribute(attributes, {})
            elif cursor.text == "meta":
                start = cursor.at
                key, index = meta_reference(cursor)
                attributes |= self.metadata.attributes(key, index, cursor.span(start))
            else:
                params.append(self._param())
            if not cursor.take(","):
                cursor.expect(")", "after the parameters of a function")
                break
        return params, attributes

    def _param(self) -> syntax.Var:
        cursor, first = self.cursor, self.cursor.at
        var = self._variable("a parameter, as %x")
        if var.name in self.names.blocks[-1]:
            raise UnityError(f"two parameters are called %{var.name}", cursor.span(first))
        self.names.bind(var.name, var)
        return var

    def _if(self, first: int) -> syntax.If:
        cursor = self.cursor
        cursor.expect("(", "after if")
        condition = self.expression()
        cursor.expect(")", "after a condition")
        then = self._block("after a condition")
        cursor.expect("else", "after the first branch")
        if cursor.text == "if":
            cursor.at += 1
            return syntax.If(condition, then, self._if(cursor.at - 1), cursor.span(first))
        otherwise = self._block("after else")
        return syntax.If(condition, then, otherwise, cursor.span(first))

    def _block(self, where: str) -> syntax.Expr:
        self.cursor.expect("{", where)
        found = self.sequence()
        self.cursor.expect("}", "after a block")
        return found

    def _match(self, first: int) -> syntax.Match:
        cursor = self.cursor
        complete = not cursor.take("?")
        value = self._calls()
        cursor.expect("{", "before the clauses of a match")
        clauses = listed(cursor, "}", self._clause, "after a clause")
        return syntax.Match(value, clauses, complete, cursor.span(first))

    def _clause(self) -> syntax.Clause:
        cursor, first = self.cursor, self.cursor.at
        with self.names.block():
            pattern = self._pattern()
            cursor.expect("=>", "after a pattern")
            return syntax.Clause(pattern, self.expression(), cursor.span(first))

    def _pattern(self) -> syntax.Pattern:
        cursor, first = self.cursor, self.cursor.at
        if cursor.kind == LOCAL:
            var = self._variable("a variable")
            self.names.bind(var.name, var)
            return syntax.VarPattern(var, cursor.span(first))
        if cursor.take("("):
            fields = listed(cursor, ")", self._pattern, "after patterns")
            return syntax.TuplePattern(fields, cursor.span(first))
        name = cursor.word(NAME, "a pattern: a constructor, a variable, a tuple or _")
        if name == "_":
            return syntax.WildcardPattern(cursor.span(first))
        if not self.names.is_constructor(name):
            raise UnityError(f"no type has the constructor {name!r}", cursor.span(first))
        fields = ()
        if cursor.take("("):
            fields = listed(cursor, ")", self._pattern, "after patterns")
        return syntax.ConstructorPattern(name, fields, cursor.span(first))

    def _reference(self, text: str, first: int) -> syntax.Expr:
        cursor = self.cursor
        cursor.at += 1
        fields = listed(cursor, ")", self.expression, f"after what {text} is given")
        span = cursor.span(first)
        match text, fields:
            case "ref", (value,):
                return syntax.RefCreate(value, span)
            case "ref_read", (cell,):
                return syntax.RefRead(cell, span)
            case "ref_write", (cell, value):
                return syntax.RefWrite(cell, value, span)
            case _:
                raise UnityError(f"{text} does not take {len(fields)} arguments", span)
