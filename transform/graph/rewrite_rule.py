"""Rewrite rules: a function of operators, and another that may stand in its place.

The first function is read as a pattern: its parameters stand for any values of their types (a type
may leave open shape, rank or dtype), its symbols for any dims, and what it calls must be there,
attributes and all. `unity.rewrite_rule` makes rules and compares both functions on random inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol, SymDim, bounds, divisor, equal, substitute, symbols_of
from unity.ir.dtype import DType
from unity.ir.graph import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.lattice import atom_type
from unity.ir.types import PrimType, ShapeType, TensorType, Type
from unity.ir.visit_graph import (
    free_vars,
    substitute_symbols,
    substitute_vars,
    type_symbols,
    walk_bindings,
)
from unity.op.infer import Fresh, infer_type
from unity.op.table import OPS

from ..pattern import Any, Const, Field, Match, OpCall, Pattern
from ..source import Held

INNER = "%"
"""Begins the captures of what is no parameter."""
TOLERANCE = 1e-6
"""Of float constants, relative: exporters round them differently."""


@dataclass(frozen=True, slots=True)
class RewriteRule(Held):
    """``before`` may be replaced by ``after``; both take the same parameters.

    Attributes:
        name: What messages call it.
        before: What is looked for.
        after: What takes its place.

    Raises:
        UnityError: A function is none that a rule can be made of.
    """

    name: str
    before: Function
    after: Function
    pattern: Pattern = field(init=False, compare=False, repr=False)
    formal: Mapping[str, Type] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_pair(self)
        reader = _Reader(self.before)
        object.__setattr__(self, "pattern", reader.result())
        object.__setattr__(self, "formal", reader.formal)
        _check_symbols(self)

    def replacement(self, match: Match, fresh: Fresh) -> tuple[tuple[VarBinding, ...], Expr] | None:
        """What stands for a match: bindings, and the atom that is the result.

        None where the types do not fit, or the result would have another type.
        """
        given = [(t, atom_type(match[name])) for name, t in self.formal.items()]
        dims = bind([f for f, _ in given], [g for _, g in given])
        if dims is None:
            return None
        args = {p: match[p.name] for p in self.after.params}
        if not match.inner.isdisjoint(v for v in args.values() if isinstance(v, Var)):
            return None  # a value is computed inside and handed in as well: it would be lost
        try:
            bindings, result = instantiate(self.after, args, dims, fresh)
        except UnityError:
            return None
        return (bindings, result) if same_type(atom_type(result), match.root.type) else None


def instantiate(
    function: Function, args: Mapping[Var, Expr], dims: Mapping[Symbol, Dim], fresh: Fresh
) -> tuple[tuple[VarBinding, ...], Expr]:
    """A rule's function on given arguments, its types told anew.

    Raises:
        UnityError: The arguments do not fit.
    """
    mapping: dict[Var, Expr] = dict(args)
    made: list[VarBinding] = []
    for binding in walk_bindings(function):
        assert isinstance(binding, VarBinding)
        value = substitute_vars(substitute_symbols(binding.value, dims), mapping)
        if isinstance(value, Call):
            value = _with_scalars_of_its_dtype(value, binding.value)
        var = Var(binding.var.name, infer_type(value, {}, fresh))
        made.append(VarBinding(var, value))
        mapping[binding.var] = var
    return tuple(made), substitute_vars(substitute_symbols(function.body.result, dims), mapping)


def _with_scalars_of_its_dtype(call: Call, written: Expr) -> Call:
    """Numbers beside operands that had no dtype in the rule take the one they have now."""
    assert isinstance(written, Call)
    open_dtype = [
        atom_type(now)
        for was, now in zip(written.args, call.args, strict=True)
        if isinstance(was, Var) and isinstance(was.type, TensorType) and was.type.dtype is None
    ]
    like = next((t.dtype for t in open_dtype if isinstance(t, TensorType) and t.dtype), None)
    if like is None:
        return call
    args = tuple(_cast(a, like) if isinstance(a, Constant) else a for a in call.args)
    return replace(call, args=args)


def _cast(constant: Constant, like: DType) -> Constant:
    if constant.data.ndim:
        return constant
    data = constant.data.astype(like.numpy)
    if not like.is_float and float(data) != float(constant.data):
        raise UnityError(f"{constant.data} is no {like}")
    return replace(constant, data=data)


def bind(formal: Sequence[Type], given: Sequence[Type | None]) -> dict[Symbol, Dim] | None:
    """What the symbols of a rule stand for; None where types do not surely fit.

    >>> from unity.ir.dims import dim
    >>> from unity.ir.dtype import FLOAT32
    >>> n, m = dim("n"), dim("m")
    >>> square = TensorType((n, n), FLOAT32)
    >>> bind([square], [TensorType((m + 1, 1 + m), FLOAT32)])
    {n: m + 1}
    >>> bind([square], [TensorType((m, 4), FLOAT32)]) is None
    True
    """
    pairs: list[tuple[Dim, Dim]] = []
    for expected, got in zip(formal, given, strict=True):
        if got is None or not _pair(expected, got, pairs):
            return None
    bound: dict[Symbol, Dim] = {}
    for want, have in pairs:
        if isinstance(want, Symbol) and want not in bound:
            if not _has_facts(want, have):
                return None
            bound[want] = have
    return bound if all(equal(substitute(w, bound), h) for w, h in pairs) else None


def _pair(expected: Type, got: Type, pairs: list[tuple[Dim, Dim]]) -> bool:
    """Whether all but the dims fits; those are noted."""
    match expected, got:
        case TensorType(shape, dtype), TensorType():
            if dtype is not None and dtype != got.dtype:
                return False
            return _pair_dims(shape, got.shape, got.ndim, pairs)
        case ShapeType(dims), ShapeType():
            return _pair_dims(dims, got.dims, got.ndim, pairs)
        case PrimType(), PrimType():
            if expected.value is not None:
                if got.value is None:
                    return False
                pairs.append((expected.value, got.value))
            return expected.dtype == got.dtype
        case _:
            return False


def _pair_dims(
    expected: tuple[Dim, ...] | int | None,
    got: tuple[Dim, ...] | int | None,
    rank: int | None,
    pairs: list[tuple[Dim, Dim]],
) -> bool:
    if not isinstance(expected, tuple):
        return expected is None or expected == rank
    if not isinstance(got, tuple) or len(got) != len(expected):
        return False
    pairs.extend(zip(expected, got, strict=True))
    return True


def _has_facts(symbol: Symbol, value: Dim) -> bool:
    """Whether a dim surely has what a symbol of a rule promises."""
    facts = symbol.facts
    low, high = bounds(value)
    if facts.min and (low is None or low < facts.min):
        return False
    if facts.max is not None and (high is None or high > facts.max):
        return False
    return divisor(value) % facts.multiple_of == 0


def same_type(a: Type | None, b: Type | None) -> bool:
    """Whether two tensor types surely agree."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype != b.dtype:
        return False
    if not isinstance(a.shape, tuple) or not isinstance(b.shape, tuple):
        return a.shape == b.shape
    return len(a.shape) == len(b.shape) and all(map(equal, a.shape, b.shape))


@dataclass(slots=True)
class _Reader:
    """Reads a function as a pattern.

    Attributes:
        formal: The types of what is captured, by name.
    """

    function: Function
    formal: dict[str, Type] = field(default_factory=dict[str, Type])
    _known: dict[Var, Pattern] = field(default_factory=dict[Var, Pattern])

    def result(self) -> Pattern:
        """The pattern of what the function gives."""
        for param in self.function.params:
            self._known[param] = Any(name=param.name, test=_type_test(param.type))
            self.formal[param.name] = param.type
        for binding in walk_bindings(self.function):
            assert isinstance(binding, VarBinding)
            name = f"{INNER}{len(self._known)}"
            self._known[binding.var] = replace(self.pattern(binding.value), name=name)
        return self.pattern(self.function.body.result)

    def pattern(self, e: Expr) -> Pattern:
        """The pattern of an expression."""
        match e:
            case Var():
                return self._known[e]
            case Constant():
                return _constant(e)
            case ShapeValue() | PrimValue():
                name = f"{INNER}size{len(self.formal)}"
                found = atom_type(e)
                assert found is not None
                self.formal[name] = found
                return Any(name=name)
            case TupleGet():
                return Field(self.pattern(e.value), e.index)
            case Call(Op(name)):
                if _attr_dims(e.attrs):
                    raise UnityError("a rule can't look for attributes of symbols", e.span)
                args = [f for a in e.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
                return OpCall((name,), tuple(map(self.pattern, args)), e.attrs, exact=True)
            case _:
                raise UnityError(
                    f"a rule can't look for {type(e).__name__}", e.span, "only for calls of ops"
                )


def _type_test(of: Type) -> Callable[[TensorType], bool]:
    """Whether a value alone may stand for a parameter; `bind` looks at all of them together."""
    return lambda given: bind([of], [given]) is not None or bool(type_symbols(of))


def _constant(c: Constant) -> Const:
    if c.data.size != 1:
        raise UnityError(
            "a rule looks for constants of one element only", c.span, "make it a parameter"
        )
    tolerance = TOLERANCE if c.data.dtype.kind not in "iub" else 0.0
    return Const(float(np.asarray(c.data, np.float64).reshape(())), tolerance)


def _check_pair(rule: RewriteRule) -> None:
    """Refuse functions that are no two sides of a rule."""
    before, after = rule.before, rule.after
    mine = [(p.name, p.type) for p in before.params]
    theirs = [(p.name, p.type) for p in after.params]
    if mine != theirs:
        shown = " and ".join(", ".join(f"{n}: {t}" for n, t in side) for side in (mine, theirs))
        raise _error(rule, f"takes other parameters before and after: {shown}", after)
    for side in (before, after):
        _check_side(rule, side)
    used = free_vars(before.body)
    lost = [p.name for p in before.params if p not in used]
    if lost:
        raise _error(rule, f"does not look for {', '.join(lost)}", before, "use every parameter")
    if before.body.result in before.params or not isinstance(before.body.result, Var):
        raise _error(rule, "looks for anything at all", before, "it must call an operator")


def _check_side(rule: RewriteRule, side: Function) -> None:
    for param in side.params:
        if not isinstance(param.type, TensorType):
            raise _error(rule, f"takes {param.name}: {param.type}, which is no tensor", side)
    for binding in walk_bindings(side):
        value = binding.value if isinstance(binding, VarBinding) else None
        match value:
            case Call(Op(name)) if OPS[name].pure:
                pass
            case TupleGet():
                pass
            case _:
                what = type(value).__name__ if value is not None else "a match_cast"
                if isinstance(value, Call) and not isinstance(value.callee, Var):
                    what = f"a call of {value.callee.name}"
                raise _error(rule, f"holds {what}", side, "rules are made of pure operators")


def _check_symbols(rule: RewriteRule) -> None:
    """Refuse dims that no match tells."""
    told = {d for t in rule.formal.values() for d in _dims(t) if isinstance(d, Symbol)}
    needed = [d for t in rule.formal.values() for d in _dims(t)]
    for binding in walk_bindings(rule.after):
        if isinstance(binding, VarBinding) and isinstance(binding.value, Call):
            needed += [d for a in binding.value.args for d in _dims(atom_type(a))]
            needed += _attr_dims(binding.value.attrs)
    lost = sorted({s.name for s in symbols_of(*needed)} - {s.name for s in told})
    if lost:
        raise _error(
            rule, f"has {', '.join(lost)}, which nothing that it looks for tells", rule.after,
            "a symbol must stand alone as a dim of a parameter",
        )  # fmt: skip


def _dims(t: Type | None) -> tuple[Dim, ...]:
    match t:
        case TensorType(tuple() as dims) | ShapeType(tuple() as dims):
            return dims
        case PrimType() if t.value is not None:
            return (t.value,)
        case _:
            return ()


def _attr_dims(attrs: Attrs) -> list[Dim]:
    flat = [i for v in attrs.values() for i in (v if isinstance(v, tuple) else (v,))]
    return [v for v in flat if isinstance(v, SymDim)]


def _error(rule: RewriteRule, message: str, side: Function, hint: str | None = None) -> UnityError:
    return UnityError(f"the rule {rule.name!r} {message}", side.span, hint)
