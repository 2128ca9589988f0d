"""The symbols that a graph function mentions: in types, shapes, attributes and sizes.

Apart from `visit_graph`, which walks variables: a symbol is used without a variable that has it, so
that what binds one must come before whatever mentions it.
"""

from __future__ import annotations

from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Symbol, SymDim, symbols_of
from unity.ir.graph import (
    Binding,
    Body,
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Expr,
    Function,
    MatchCast,
    PrimValue,
    Scan,
    ShapeValue,
    While,
)
from unity.ir.visiting.visit_graph import bodies_of, graph_children, type_symbols


def function_mentions(f: Function) -> set[Symbol]:
    """The symbols of a function: its signature's, and all that its body mentions."""
    found = set(type_symbols(f.result)) | body_mentions(f.body)
    for param in f.params:
        found |= type_symbols(param.type)
    return found


def body_mentions(body: Body) -> set[Symbol]:
    """The symbols of a body, nested ones included."""
    found = expr_mentions(body.result)
    for block in body.blocks:
        for binding in block.bindings:
            found |= binding_mentions(binding)
    return found


def binding_mentions(binding: Binding) -> set[Symbol]:
    """The symbols of a binding: its variable's type and its right side."""
    found = set(type_symbols(binding.var.type)) | expr_mentions(binding.value)
    if isinstance(binding, MatchCast):
        found |= type_symbols(binding.type)
    return found


def expr_mentions(e: Expr) -> set[Symbol]:
    """The symbols of an expression, nested bodies included; not those of variables' types.

    >>> from unity.ir.dims import dim
    >>> sorted(s.name for s in expr_mentions(ShapeValue((dim("n") * 2, dim("m"), 3))))
    ['m', 'n']
    """
    match e:
        case ShapeValue(dims):
            return set(symbols_of(*dims))
        case PrimValue(value):
            return set() if isinstance(value, float) else set(symbols_of(value))
        case Function():
            return function_mentions(e)
        case _:
            pass
    found: set[Symbol] = set()
    match e:
        case Call(_, _, attrs) | CallLibrary(_, _, _, attrs) | CallEngine(_, _, _, _, attrs):
            found |= _in_attrs(attrs)
        case CallTir():
            found |= symbols_of(*e.sym_args)
        case While():
            found.update(s for v in e.vars for s in type_symbols(v.type))
        case Scan():
            found.update(s for v in (*e.state, *e.elements) for s in type_symbols(v.type))
        case _:
            pass
    if isinstance(e, CallTir | CallLibrary | CallPython | CallEngine):
        found.update(s for t in e.out for s in type_symbols(t))
    for child in graph_children(e):
        found |= expr_mentions(child)
    for body in bodies_of(e):
        found |= body_mentions(body)
    return found


def _in_attrs(attrs: Attrs) -> set[Symbol]:
    found: set[Symbol] = set()

    def note(value: AttrValue) -> None:
        if isinstance(value, tuple):
            for v in value:
                note(v)
        elif isinstance(value, SymDim):
            found.update(symbols_of(value))

    for value in attrs.values():
        note(value)
    return found
