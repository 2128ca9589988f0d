"""Tensors and the operations that make them: placeholder, compute, extern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import TypeAlias, TypeVar

from unity.arguments import public, shown
from unity.errors import UnityError, index_count
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dtype import FLOAT32, INT64, DType, dtype
from unity.ir.prim_expr import Cast, Load, Operand, PrimExpr, PrimVar, as_prim_expr
from unity.ir.stmt import Buffer, Stmt

from .reduction import Extent, Reduce, ReduceAxis, as_extent

T = TypeVar("T")
Index: TypeAlias = Operand | ReduceAxis


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    """A buffer that knows how it is made: the `index`-th output of an operation.

    Make one with `placeholder`, `compute` or `extern`; `create_prim_func` puts plain buffers in
    its place.
    """

    op: Operation = field(kw_only=True)
    index: int = 0

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @public
    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Load:
        """The element at some indices.

        Raises:
            UnityError: Their number is not the rank.
        """
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.ndim:
            raise UnityError(index_count(self.name, self.ndim, len(given)))
        return Load(self, tuple(_index(i) for i in given))


def _index(value: Index) -> PrimExpr:
    expr = value.var if isinstance(value, ReduceAxis) else as_prim_expr(value)
    return expr if expr.dtype == INT64 else Cast(INT64, expr)


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder:
    """An input."""


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """A formula for each element of one or several tensors of one shape."""

    name: str
    axes: tuple[PrimVar, ...]
    body: Reduce | tuple[PrimExpr, ...]
    outputs: tuple[Buffer, ...]
    attrs: Attrs


@dataclass(frozen=True, slots=True, eq=False)
class Extern:
    """A hand-written statement that fills the outputs."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Buffer, ...]
    body: Stmt
    attrs: Attrs


Operation: TypeAlias = Placeholder | Compute | Extern


@public
def placeholder(
    shape: Sequence[Extent], of: DType | str = FLOAT32, name: str = "placeholder"
) -> Tensor:
    """An input tensor."""
    return Tensor(name, tuple(as_extent(e) for e in shape), dtype(of), op=Placeholder())


@public
def compute(
    shape: Sequence[Extent],
    fn: Callable[..., Operand | Reduce],
    name: str = "compute",
    of: DType | str | None = None,
    attrs: Attrs = NO_ATTRS,
) -> Tensor:
    """A tensor whose element at some indices is ``fn(*indices)``.

    Args:
        shape: The extents.
        fn: Takes a variable for each dim, gives a value or a reduction.
        name: The name of the tensor and its block.
        of: The dtype to cast to; the value's own by default (a bare number is a float32).
        attrs: The block's attributes.
    """

    def values(*axes: PrimVar) -> tuple[PrimExpr, ...] | Reduce:
        result = _formula(fn, axes)
        if isinstance(result, Reduce):
            return result
        value = as_prim_expr(result, FLOAT32 if of is None else dtype(of))
        return (value if of is None or value.dtype == dtype(of) else Cast(dtype(of), value),)

    axes = _axes(fn, len(shape))
    return _make(shape, axes, values(*axes), (name,), attrs)[0]


@public
def compute_many(
    shape: Sequence[Extent],
    fn: Callable[..., Sequence[PrimExpr] | Reduce],
    names: Sequence[str],
    attrs: Attrs = NO_ATTRS,
) -> tuple[Tensor, ...]:
    """Several tensors of one shape made in one block, as by `argmax`.

    >>> from unity import te
    >>> a = te.placeholder((4, 8), "float32", "a")
    >>> k = te.reduce_axis(8, "k")
    >>> at, best = te.compute_many((4,), lambda i: te.argmax(k, a[i, k], [k]), ("at", "best"))
    >>> at.dtype.name, best.dtype.name
    ('int64', 'float32')
    """
    axes = _axes(fn, len(shape))
    result = _formula(fn, axes)
    if not isinstance(result, Reduce | tuple | list):
        raise UnityError(f"the formula must give several values, got {shown(result)}")
    body = result if isinstance(result, Reduce) else tuple(as_prim_expr(v) for v in result)
    count = len(body.values) if isinstance(body, Reduce) else len(body)
    if count != len(names):
        raise UnityError(f"the formula gives {count} values for the names {', '.join(names)}")
    return _make(shape, axes, body, names, attrs)


def _formula(fn: Callable[..., T], axes: Sequence[PrimVar]) -> T:
    """What a formula gives for some axes."""
    try:
        signature(fn).bind(*axes)
    except TypeError:
        count = len(axes)
        raise UnityError(
            f"the formula must take {count} indices, one for each axis of the shape",
            hint=f"lambda {', '.join(f'i{d}' for d in range(count))}: ...",
        ) from None
    except ValueError:  # Python doesn't know the signature of what is built in
        pass
    return fn(*axes)


def _make(
    shape: Sequence[Extent],
    axes: tuple[PrimVar, ...],
    body: Reduce | tuple[PrimExpr, ...],
    names: Sequence[str],
    attrs: Attrs,
) -> tuple[Tensor, ...]:
    values = body.values if isinstance(body, Reduce) else body
    extents = tuple(as_extent(e) for e in shape)
    outputs = tuple(Buffer(n, extents, v.dtype) for n, v in zip(names, values, strict=True))
    op = Compute(names[0], axes, body, outputs, attrs)
    return _tensors(op)


def _tensors(op: Compute | Extern) -> tuple[Tensor, ...]:
    return tuple(Tensor(b.name, b.shape, b.dtype, op=op, index=i) for i, b in enumerate(op.outputs))


def _axes(fn: Callable[..., object], rank: int) -> tuple[PrimVar, ...]:
    """Variables named as the function names its parameters."""
    code = getattr(fn, "__code__", None)
    names: tuple[str, ...] = ()
    if code is not None:
        names = code.co_varnames[: code.co_argcount]
    if len(names) != rank:
        names = tuple(f"i{d}" for d in range(rank))
    return tuple(PrimVar(f"v{n}") for n in names)


@public
def extern(
    outputs: Sequence[tuple[Sequence[Extent], DType | str]],
    inputs: Sequence[Tensor],
    fn: Callable[[Sequence[Buffer], Sequence[Buffer]], Stmt],
    name: str = "extern",
    names: Sequence[str] | None = None,
    attrs: Attrs = NO_ATTRS,
) -> tuple[Tensor, ...]:
    """Tensors made by a hand-written statement.

    Args:
        outputs: Shape and dtype of each.
        inputs: The tensors the statement reads.
        fn: (input buffers, output buffers) -> statement.
        name: The name of the block.
        names: The names of the outputs.
        attrs: The block's attributes.
    """
    called = names or [name if len(outputs) == 1 else f"{name}{i}" for i in range(len(outputs))]
    made = tuple(
        Buffer(n, tuple(as_extent(e) for e in shape), dtype(of))
        for n, (shape, of) in zip(called, outputs, strict=True)
    )
    op = Extern(name, tuple(inputs), made, fn(inputs, made), attrs)
    return _tensors(op)
