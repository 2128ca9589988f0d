"""Relations between types: subtype, join, unification of symbols, erasure to what is in scope."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, equal, substitute, symbols_of
from unity.ir.dtype import DType, dtype
from unity.ir.graph import (
    Constant,
    Expr,
    Function,
    Literal,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
)
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    Shape,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)

Dims = Shape | int | None


def is_subtype(a: Type, b: Type) -> bool:
    """Whether every value of type `a` is provably of type `b`."""
    match a, b:
        case _, ObjectType():
            return True
        case TensorType(), TensorType():
            return (
                _dims_fit(a.shape, b.shape)
                and b.dtype in (None, a.dtype)
                and b.device in (None, a.device)
            )
        case ShapeType(), ShapeType():
            return _dims_fit(a.dims, b.dims)
        case PrimType(), PrimType():
            known = b.value is None or (a.value is not None and equal(a.value, b.value))
            return a.dtype == b.dtype and known
        case TupleType(), TupleType():
            return len(a.fields) == len(b.fields) and all(
                is_subtype(x, y) for x, y in zip(a.fields, b.fields, strict=True)
            )
        case FuncType(), FuncType():
            return (
                len(a.params) == len(b.params)
                and all(is_subtype(y, x) for x, y in zip(a.params, b.params, strict=True))
                and is_subtype(a.result, b.result)
                and (a.pure or not b.pure)
            )
        case _:
            return False


def _rank(dims: Dims) -> int | None:
    return len(dims) if isinstance(dims, tuple) else dims


def _dims_fit(a: Dims, b: Dims) -> bool:
    if b is None:
        return True
    if isinstance(b, int):
        return _rank(a) == b
    return (
        isinstance(a, tuple)
        and len(a) == len(b)
        and all(equal(x, y) for x, y in zip(a, b, strict=True))
    )


def join(a: Type, b: Type) -> Type:
    """The least type that both are subtypes of, as far as it can be written down."""
    match a, b:
        case TensorType(), TensorType():
            return TensorType(
                _join_dims(a.shape, b.shape),
                a.dtype if a.dtype == b.dtype else None,
                a.device if a.device == b.device else None,
            )
        case ShapeType(), ShapeType():
            return ShapeType(_join_dims(a.dims, b.dims))
        case PrimType(), PrimType() if a.dtype == b.dtype:
            same = a.value is not None and b.value is not None and equal(a.value, b.value)
            return a if same else PrimType(a.dtype)
        case TupleType(), TupleType() if len(a.fields) == len(b.fields):
            return TupleType(tuple(join(x, y) for x, y in zip(a.fields, b.fields, strict=True)))
        case FuncType(), FuncType() if a == b:
            return a
        case _:
            return ObjectType()


def _join_dims(a: Dims, b: Dims) -> Dims:
    if _dims_fit(a, b):
        return b
    if _dims_fit(b, a):
        return a
    rank = _rank(a)
    return rank if rank is not None and rank == _rank(b) else None


def erase(t: Type, scope: frozenset[Symbol]) -> Type:
    """The type without what mentions symbols outside `scope`: shapes fall back to their rank."""
    match t:
        case TensorType(shape=tuple(dims)) if not symbols_of(*dims) <= scope:
            return TensorType(len(dims), t.dtype, t.device)
        case ShapeType(dims=tuple(dims)) if not symbols_of(*dims) <= scope:
            return ShapeType(len(dims))
        case PrimType(value=value) if value is not None and not symbols_of(value) <= scope:
            return PrimType(t.dtype)
        case TupleType():
            return TupleType(tuple(erase(f, scope) for f in t.fields))
        case _:
            return t


def unify(params: Sequence[Type], args: Sequence[Type]) -> dict[Symbol, Dim]:
    """What each symbol of the parameters' types stands for, given the arguments' types.

    A symbol is bound where it stands alone as a dim; compound dims are checked afterwards. What can
    only be known at run time (an argument of unknown shape) is left unbound.

    Raises:
        UnityError: The number, kinds, dtypes, ranks or provable dims do not fit.
    """
    if len(params) != len(args):
        raise UnityError(f"expected {len(params)} arguments, got {len(args)}")
    pairs: list[tuple[str, Dim, Dim]] = []
    for i, (param, arg) in enumerate(zip(params, args, strict=True)):
        _pair(f"argument {i}", param, arg, pairs)
    bound: dict[Symbol, Dim] = {}
    for where, expected, got in pairs:
        if not isinstance(expected, Symbol):
            continue
        if expected in bound and _provably_different(bound[expected], got):
            raise UnityError(f"{where}: {expected} is {bound[expected]} elsewhere but {got} here")
        bound.setdefault(expected, got)
    for where, expected, got in pairs:
        if symbols_of(expected) <= bound.keys():
            value = substitute(expected, bound)
            if _provably_different(value, got):
                raise UnityError(f"{where}: expected {value}, got {got}")
    return bound


def may_equal(a: Dim, b: Dim) -> bool:
    """Whether two dims are equal, or may be for some values of their symbols."""
    return not _provably_different(a, b)


def _provably_different(a: Dim, b: Dim) -> bool:
    difference = a - b
    return (isinstance(difference, int) and difference != 0) or _is_nonzero_integer(difference)


def _is_nonzero_integer(difference: Dim) -> bool:
    return not symbols_of(difference) and not equal(difference, 0)


def _pair(where: str, param: Type, arg: Type, pairs: list[tuple[str, Dim, Dim]]) -> None:
    match param, arg:
        case ObjectType(), _:
            return
        case _, ObjectType():
            return
        case TensorType(), TensorType():
            if param.dtype is not None and arg.dtype is not None and param.dtype != arg.dtype:
                raise UnityError(f"{where}: expected dtype {param.dtype}, got {arg.dtype}")
            _pair_dims(where, param.shape, arg.shape, pairs)
        case ShapeType(), ShapeType():
            _pair_dims(where, param.dims, arg.dims, pairs)
        case PrimType(), PrimType():
            if param.dtype != arg.dtype:
                raise UnityError(f"{where}: expected a {param.dtype}, got a {arg.dtype}")
            if param.value is not None and arg.value is not None:
                pairs.append((where, param.value, arg.value))
        case TupleType(), TupleType():
            if len(param.fields) != len(arg.fields):
                sizes = f"expected a tuple of {len(param.fields)}, got one of {len(arg.fields)}"
                raise UnityError(f"{where}: {sizes}")
            for i, (p, a) in enumerate(zip(param.fields, arg.fields, strict=True)):
                _pair(f"{where}[{i}]", p, a, pairs)
        case FuncType(), FuncType():
            if not is_subtype(arg, param):
                raise UnityError(f"{where}: the function's type does not fit")
        case _:
            raise UnityError(f"{where}: expected {param}, got {arg}")


def _pair_dims(where: str, param: Dims, arg: Dims, pairs: list[tuple[str, Dim, Dim]]) -> None:
    expected, got = _rank(param), _rank(arg)
    if expected is not None and got is not None and expected != got:
        raise UnityError(f"{where}: expected rank {expected}, got rank {got}")
    if isinstance(param, tuple) and isinstance(arg, tuple):
        for axis, (p, a) in enumerate(zip(param, arg, strict=True)):
            pairs.append((f"{where}, axis {axis}", p, a))


def atom_type(e: Expr) -> Type | None:
    """The type of an expression that shows it without rules: an atom, or a tuple of such."""
    match e:
        case Var():
            return e.type
        case Constant():
            return TensorType(tuple(e.data.shape), dtype(e.data.dtype))
        case ShapeValue():
            return ShapeType(e.dims)
        case PrimValue():
            value = e.value if e.dtype.is_int and not isinstance(e.value, float) else None
            return PrimType(e.dtype, value)
        case Literal():
            return ObjectType()
        case Tuple():
            fields = [atom_type(f) for f in e.fields]
            known = [f for f in fields if f is not None]
            return TupleType(tuple(known)) if len(known) == len(fields) else None
        case TupleGet():
            inner = atom_type(e.value)
            return inner.fields[e.index] if isinstance(inner, TupleType) else None
        case Function():
            return function_type(e)
        case _:
            return None


def atom_dtype(e: Expr) -> DType | None:
    """What a tensor is of, where that is known and it is one."""
    kind = atom_type(e)
    return kind.dtype if isinstance(kind, TensorType) else None


def function_type(f: Function) -> FuncType:
    """The type of a graph function."""
    return FuncType(tuple(p.type for p in f.params), f.result, f.pure)


__all__ = [
    "atom_type",
    "erase",
    "function_type",
    "is_subtype",
    "join",
    "unify",
]
