"""Rewrite rules: a function of operators, and another that may stand in its place.

The first function is read as a pattern: its parameters stand for any values of their types (a type
may leave open shape, rank or dtype), its symbols for any dims, and what it calls must be there,
attributes and all. `unity.rewrite_rule` makes rules and compares both functions on random inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, symbols_of
from unity.ir.dtype import DType
from unity.ir.graph import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.lattice import atom_type
from unity.ir.types import PrimType, ShapeType, TensorType, Type
from unity.ir.visiting.visit_graph import (
    free_vars,
    substitute_symbols,
    substitute_vars,
    walk_bindings,
)
from unity.op.infer import Fresh, infer_type
from unity.op.table import OPS
from unity.script.printer.module import text

from ...pattern import Match, Pattern
from ...pattern.bind import bind, same_type
from ...pattern.from_function import pattern_of, symbolic_attrs
from ...source import Held


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
        pattern, formal = pattern_of(self.before)
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "formal", formal)
        _check_symbols(self)

    def __repr__(self) -> str:
        """Both functions as they are written."""
        return f"{self.name}:\n{text(self.before, 'before')}{text(self.after, 'after')}".rstrip()

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
            needed += symbolic_attrs(binding.value.attrs)
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


def _error(rule: RewriteRule, message: str, side: Function, hint: str | None = None) -> UnityError:
    return UnityError(f"the rule {rule.name!r} {message}", side.span, hint)
