"""specialize: sizes that are unknown in a prim func become numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, Not, PrimExpr, Select, SizeVar, imm
from unity.ir.signature import size_params
from unity.ir.stmt import Block, Buffer, For, PrimFunc, Range, Stmt
from unity.ir.visit import map_stmt, rewrite_prim, substitute_prim, substitute_stmt, variables

from ...blocks.tree import Outcome, Values, conjunction, illegal, with_regions


def specialize(func: PrimFunc, sizes: Mapping[str, int]) -> Outcome:
    """The prim func for buffers of known sizes; loops keep their handles.

    Args:
        func: The prim func.
        sizes: Numbers by the names of symbols in the shapes of its parameters.

    Raises:
        UnityError: There is no such symbol, it is a parameter of its own, which callers give, or
            it can't be that number.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(n, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> outer, inner = sch.split(sch.get_loops("copy")[0], [None, 4])
    >>> sch.specialize({"n": 64})
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
        for i_0, i_1 in T.grid(16, 4):
            with T.block("copy"):
                vi = T.axis.spatial(64, i_0 * 4 + i_1)
                c[vi] = a[vi]
    """
    where = "specialize, argument 1 'sizes'"
    by_name = {s.name: s for s in size_params(func)}
    values: Values = {}
    for name, number in sizes.items():
        symbol = by_name.get(name)
        if symbol is None:
            has = ", ".join(by_name) or "none"
            raise illegal(where, f"there is no symbol {name!r}", f"the symbols are: {has}")
        if symbol in func.params:
            raise illegal(where, f"{name!r} is a parameter of its own, which callers give")
        _refuse(where, symbol, number)
        values[symbol] = imm(number)
    return Outcome(with_sizes(func, values))


def with_sizes(func: PrimFunc, values: Values) -> PrimFunc:
    """The prim func with values in place of sizes; those that are parameters are none any more.

    Args:
        func: The prim func.
        values: What its sizes are.
    """
    buffers = {b: _sized(b, values) for b in func.buffers}
    params = tuple(
        buffers[p] if isinstance(p, Buffer) else p for p in func.params if p not in values
    )
    body = substitute_stmt(func.body, values, buffers)
    return replace(func, params=params, body=settled(body, Analyzer()))


def _refuse(where: str, symbol: SizeVar, number: int) -> None:
    facts = symbol.facts
    if number < facts.min or (facts.max is not None and number > facts.max):
        most = "any" if facts.max is None else facts.max
        raise illegal(where, f"{symbol.name!r} is from {facts.min} to {most}, got {number}")
    if number % facts.multiple_of:
        raise illegal(where, f"{symbol.name!r} is a multiple of {facts.multiple_of}, got {number}")


def _sized(buffer: Buffer, values: Values) -> Buffer:
    known = Analyzer()

    def number(e: PrimExpr) -> PrimExpr:
        return known.simplify(substitute_prim(e, values))

    strides = None if buffer.strides is None else tuple(map(number, buffer.strides))
    return replace(buffer, shape=tuple(map(number, buffer.shape)), strides=strides)


def settled(s: Stmt, known: Analyzer) -> Stmt:
    """A statement with what is known decided: bounds, domains, predicates, `min` and `select`."""
    match s:
        case For():
            begin, extent = known.simplify(s.begin), known.simplify(s.extent)
            inside = known.with_extent(s.var, begin, extent)
            return replace(s, begin=begin, extent=extent, body=settled(s.body, inside))
        case Block():
            parts = () if s.predicate is None else conjuncts(s.predicate)
            left = [p for p in parts if not known.prove(p)]  # as they are: they name their loops
            axes = tuple(
                replace(
                    a,
                    value=_settled_value(a.value, known),
                    domain=Range(known.simplify(a.domain.begin), known.simplify(a.domain.extent)),
                )
                for a in s.axes
            )
            for a in axes:
                known = known.with_extent(a.var, a.domain.begin, a.domain.extent)
            init = None if s.init is None else settled(s.init, known)
            body = settled(s.body, known)
            new = replace(s, axes=axes, predicate=conjunction(left), init=init, body=body)
            return with_regions(new)
        case _:
            return map_stmt(s, lambda x: settled(x, known), lambda e: _decided(e, known))


def _settled_value(value: PrimExpr, known: Analyzer) -> PrimExpr:
    """An axis' value simplified, but that it names its loops: an empty one runs the init yet."""
    new = known.simplify(value)
    return new if variables(new) == variables(value) else value


def _decided(e: PrimExpr, known: Analyzer) -> PrimExpr:
    """An expression with what is known chosen, where it chooses."""

    def choose(x: PrimExpr) -> PrimExpr | None:
        match x:
            case Binary("min" | "max" as op, a, b) if x.dtype == INT64:
                less, more = (a, b) if op == "min" else (b, a)
                if known.prove(Compare("le", less, more)):
                    return a
                return b if known.prove(Compare("le", more, less)) else None
            case Select(condition, then, otherwise):
                if known.prove(condition):
                    return then
                return otherwise if known.prove(Not(condition)) else None
            case _:
                return None

    return rewrite_prim(e, choose)
