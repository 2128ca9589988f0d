"""Caches kept between calls: ``present = concat(past, new)`` becomes rows written in place.

Before compiling. What comes out takes each cache with room for rows to come and writes the new
ones in place; `unity.runtime.session` holds the caches and knows how many rows are in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, as_dim, dim, dim_text, equal, symbols_of
from unity.ir.graph import Body, Call, Expr, Function, Op, Tuple, Var
from unity.ir.lattice import atom_type, erase
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols, walk_bindings
from unity.op.call import call_op
from unity.options import Caches
from unity.transform.graph.rewriter import BodyRewriter
from unity.transform.graph.uses import count_uses

LENGTH = "cache_length"


def with_caches(module: IRModule, caches: Caches, function: str = "main") -> IRModule:
    """The module with caches that are written in place.

    Each cache's input, ``past``, of p rows along some axis, gets p + new + room rows; the output
    ``present = concat(past, new)`` is that same tensor (the function's attribute ``aliases``). A
    last parameter, the shape ``(p, room)``, tells how many rows are in use.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... p = dim("p")
    ... t = dim("t")
    ... @script.function
    ... def main(
    ...     x: f32[Tensor, t, 8], past: f32[Tensor, p, 8]
    ... ) -> R.Tuple(f32[Tensor, 8], f32[Tensor, p + t, 8]):
    ...     present = R.concat((past, R.exp(x)), axis=0)
    ...     y = R.sum(present, axis=(0,))
    ...     result = (y, present)
    ...     return result
    ... ''')
    >>> print(print_module(with_caches(before, True)), end="")  # doctest: +NORMALIZE_WHITESPACE
    p = dim("p")
    room = dim("room")
    t = dim("t")
    <BLANKLINE>
    <BLANKLINE>
    @script.function(attrs={"aliases": ((1, 1),)})
    def main(x: f32[Tensor, t, 8], past: f32[Tensor, p + room + t, 8],
             cache_length: R.Shape(p, room))
            -> R.Tuple(f32[Tensor, 8], f32[Tensor, p + room + t, 8]):
        exp = R.exp(x)
        present = R.nn.cache_append(past, exp, length=p)
        present_1 = R.strided_slice(present, axes=(0,), begin=(0,), end=(p + t,))
        y = R.sum(present_1, axis=(0,))
        result = (y, present)
        return result

    Args:
        module: The module.
        caches: Which outputs are which inputs continued; True: all that are.
        function: Which function.

    Raises:
        UnityError: There is no such input or output; an output is not an input with rows put behind
            it; the input is used otherwise, or its number of rows is no symbol of its own.
    """
    found = module[function]
    if not isinstance(found, Function):
        raise UnityError(f"{function!r} is no graph function")
    values = {b.var: b.value for b in walk_bindings(found)}
    pairs = _pairs(found, caches, values)
    if not pairs:
        raise UnityError(
            "caches: no output is an input with rows put behind it",
            hint="a cache is an output concat((past, new)) of an input past",
        )
    return module.with_({function: _Keeper(module, found, values, pairs).kept()})


@dataclass(frozen=True, slots=True)
class _Cache:
    """A cache: its input and output, the concat between them and what that adds."""

    param: int
    result: int
    present: Var
    new: Expr
    axis: int


Values: TypeAlias = Mapping[Var, Expr]


def _pairs(function: Function, caches: Caches, values: Values) -> list[_Cache]:
    """The caches that are asked for."""
    results = _results(function, values)
    if caches is True:
        found = (_cache(function, k, r, values) for k, r in enumerate(results))
        return [c for c in found if isinstance(c, _Cache)]
    if not isinstance(caches, Mapping):
        raise UnityError(
            f"caches must be True or a dict of output and input names, got {caches!r}",
            hint='e.g. {"present.0.key": "past.0.key"}',
        )
    inputs = _names(function, "input_names", [q.name for q in function.params])
    outputs = _names(function, "output_names", [f"output{k}" for k in range(len(results))])
    pairs: list[_Cache] = []
    for output, given in caches.items():
        for name, known, what in ((output, outputs, "output"), (given, inputs, "input")):
            if name not in known:
                raise UnityError(
                    f"caches: no {what} {name!r}", hint=f"the {what}s: {', '.join(known)}"
                )
        cache = _cache(function, outputs[output], results[outputs[output]], values)
        if isinstance(cache, str):
            raise UnityError(f"caches: the output {output!r} {cache}")
        if cache.param != inputs[given]:
            other = function.params[cache.param].name
            raise UnityError(f"caches: the output {output!r} continues {other!r}, not {given!r}")
        pairs.append(cache)
    return pairs


def _names(function: Function, attr: str, own: list[str]) -> dict[str, int]:
    """Positions by the program's own names, and by the imported model's."""
    given = function.attrs.get(attr, ())
    imported = given if isinstance(given, tuple) else ()
    places = {name: i for i, name in enumerate(own)}
    return places | {str(name): i for i, name in enumerate(imported)}


def _results(function: Function, values: Values) -> tuple[Expr, ...]:
    result: Expr | None = function.body.result
    if isinstance(result, Var):
        result = values.get(result, result)
    return result.fields if isinstance(result, Tuple) else (function.body.result,)


def _cache(function: Function, k: int, result: Expr, values: Values) -> _Cache | str:
    """The cache that a result is, or why it is none."""
    made = values.get(result) if isinstance(result, Var) else None
    if not isinstance(result, Var) or not isinstance(made, Call) or made.callee != Op("concat"):
        return "is no concat"
    parts = values.get(made.args[0]) if isinstance(made.args[0], Var) else made.args[0]
    if not isinstance(parts, Tuple) or len(parts.fields) != 2:
        return "is no concat of two tensors"
    past, new = parts.fields
    if past not in function.params:
        return "does not begin with an input"
    kind, axis = atom_type(past), made.attrs["axis"]
    if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
        return "continues an input of unknown shape"
    assert isinstance(axis, int)
    axis %= len(kind.shape)
    param = function.params.index(past)
    rows = kind.shape[axis]
    if not isinstance(rows, Symbol):
        name = function.params[param].name
        return (
            f"continues the input {name!r}, whose axis {axis} is {dim_text(rows)}, "
            f"no symbol: make it one with dynamic={{{name!r}: {{{axis}: 'past'}}}}"
        )
    return _Cache(param, k, result, new, axis)


class _Keeper(BodyRewriter):
    """Carries the caches' new parameters, and what their concats become."""

    def __init__(
        self, module: IRModule, function: Function, values: Values, caches: list[_Cache]
    ) -> None:
        super().__init__(module)
        self.old = function
        self.results = _results(function, values)
        self.caches = {c.present: c for c in caches}
        self.length, self.added = self.rows(caches)
        taken = {s.name for q in function.params for s in type_symbols(q.type)}
        self.room = dim(_fresh("room", taken))
        self.appended: dict[int, Var] = {}
        uses = count_uses(function.body)
        for c in caches:
            past = function.params[c.param]
            if uses[past] != 1:
                raise UnityError(
                    f"caches: the input {past.name!r} is used by more than the concat "
                    f"that makes {c.present.name!r}",
                    hint="leave it out of caches",
                )

    def rows(self, caches: list[_Cache]) -> tuple[Symbol, Dim]:
        """How many rows all the caches hold, and how many a call adds."""
        found: list[tuple[Symbol, Dim]] = []
        known = {s for q in self.old.params for s in type_symbols(q.type)}
        for c in caches:
            kind, new = self.old.params[c.param].type, atom_type(c.new)
            assert isinstance(kind, TensorType)
            assert isinstance(kind.shape, tuple)
            rows = kind.shape[c.axis]
            assert isinstance(rows, Symbol)
            shape = new.shape if isinstance(new, TensorType) else None
            if not isinstance(shape, tuple) or not symbols_of(shape[c.axis]) <= known - {rows}:
                raise UnityError(
                    f"caches: how many rows {c.present.name!r} adds depends on more than the "
                    "shapes of the inputs"
                )
            found.append((rows, shape[c.axis]))
        length, added = found[0]
        for other, more in found[1:]:
            if other is not length or not equal(more, added):
                raise UnityError(
                    f"caches: {caches[0].present.name!r} has {dim_text(length)} + "
                    f"{dim_text(added)} rows, another cache {dim_text(other)} + {dim_text(more)}",
                    hint="all caches must grow together; give their axes one name with dynamic=",
                )
        return length, added

    def kept(self) -> Function:
        """The function with its caches as parameters that are written in place."""
        old = self.old
        params = list(old.params)
        for c in self.caches.values():
            past = old.params[c.param]
            params[c.param] = Var(past.name, self.widened(past.type, c.axis), past.span)
            self.env[past] = params[c.param]
        names = {q.name for q in params}
        params.append(Var(_fresh(LENGTH, names), ShapeType((self.length, self.room))))
        new = self.function(replace(old, params=tuple(params)))
        body = new.body
        if isinstance(body.result, Tuple) or not isinstance(old.result, TupleType):
            whole = body.result.fields if isinstance(body.result, Tuple) else (body.result,)
            fields = self.continued(whole)
            one = isinstance(old.result, TupleType)
            body = Body(body.blocks, Tuple(fields) if one else fields[0])
        result = atom_type(body.result)
        assert result is not None
        attrs = old.attrs.with_(aliases=tuple((c.result, c.param) for c in self.caches.values()))
        if "input_names" in attrs:
            imported = attrs["input_names"]
            assert isinstance(imported, tuple)
            attrs = attrs.with_(input_names=(*imported, params[-1].name))
        scope = frozenset(s for q in params for s in type_symbols(q.type))
        return replace(new, body=body, result=erase(result, scope), attrs=attrs)

    def continued(self, fields: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Results with the caches themselves in the place of their rows in use."""
        return tuple(self.appended.get(k, r) for k, r in enumerate(fields))

    def widened(self, kind: Type, axis: int) -> TensorType:
        """A cache's type: rows in use, new ones, and room."""
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        rows = as_dim(self.length + self.added + self.room)
        return replace(kind, shape=(*kind.shape[:axis], rows, *kind.shape[axis + 1 :]))

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if var is self.old.body.result and isinstance(value, Tuple):
            self.refine()
            return Tuple(self.continued(value.fields), value.span)
        cache = self.caches.get(var)
        if cache is None:
            return value
        past = self.env[self.old.params[cache.param]]
        new = self.atom(cache.new)
        axis = cache.axis
        call = call_op("nn.cache_append", past, new, length=self.length, axis=axis)
        self.appended[cache.result] = self.emit(call, var.name, var.span)
        end = as_dim(self.length + self.added)
        grown = self.appended[cache.result]
        return call_op("strided_slice", grown, axes=(axis,), begin=(0,), end=(end,))


def _fresh(name: str, taken: set[str]) -> str:
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found
