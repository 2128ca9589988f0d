"""``R``: the names of graph functions, typed for editors and type checkers.

At run time nearly every name is a `Marker` that the parser reads; those of annotations are real.
The functions marked `word` never run: the parser binds calls to their signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)

from .annotations import Element, Rank, Tensor, extent
from .annotations import Prim as Prim
from .marker import Marker, word

__all__ = ["Func", "Object", "Prim", "Shape", "Tuple", "any_dtype", "rank"]


@public
def rank(ndim: int) -> Rank:
    """In place of a shape: only the number of dims is known."""
    if ndim < 0:
        raise UnityError(f"a rank can't be negative, got {ndim}")
    return Rank(ndim)


@public
def Shape(*dims: object) -> ShapeType:  # noqa: N802
    """The type of a shape: ``R.Shape(n, 4)``, ``R.Shape(R.rank(2))``, ``R.Shape(...)``."""
    if len(dims) == 1:
        if isinstance(dims[0], Rank):
            return ShapeType(dims[0].ndim)
        if dims[0] is ...:
            return ShapeType(None)
    return ShapeType(tuple(extent(d) for d in dims))


@public
def Tuple(*fields: object) -> TupleType:  # noqa: N802
    """The type of a tuple."""
    return TupleType(tuple(as_type(f) for f in fields))


@public
def Func(params: Sequence[object], result: object, pure: bool = True) -> FuncType:  # noqa: N802
    """The type of a graph function: ``R.Func([f32[Tensor, n]], f32[Tensor, n])``."""
    return FuncType(tuple(as_type(p) for p in params), as_type(result), pure)


def as_type(value: object) -> Type:
    """A value found in an annotation, as a type.

    Raises:
        UnityError: It is none.
    """
    if isinstance(value, TensorType | ShapeType | PrimType | TupleType | FuncType | ObjectType):
        return value
    raise UnityError(
        f"expected a type, got {value!r}",
        hint='types look like f32[Tensor, n, 128]; a number is R.Prim("int64")',
    )


if TYPE_CHECKING:
    from typing import Annotated as any_dtype

    Object: TypeAlias = Tensor
    Size: TypeAlias = object
    Operands: TypeAlias = Tensor | tuple[Tensor | Array | float, ...]

    from .operators import *  # noqa: F403  all operators, from the stub made of their rows

    def __getattr__(name: str) -> Family: ...

    class Family:
        """Operators of another package, ``R.acme``."""

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...

else:
    any_dtype = Element(None)
    Object = ObjectType()

    def __getattr__(name: str) -> Marker:
        """The marker of any other name."""
        if name.startswith("__"):
            raise AttributeError(name)
        from .operator_names import operator_name

        return operator_name(f"R.{name}")

    def __dir__() -> list[str]:
        """What programs write, and the first parts of operators' names."""
        from .operator_names import names_below

        words = [n for n, v in globals().items() if isinstance(v, Marker)]
        return sorted({*__all__, *words, *names_below("")})


@word
def call_tir(
    callee: object,
    args: Operands,
    out: object,
    *,
    sym_args: tuple[Size, ...] = (),
    inplace: tuple[int, ...] = (),
) -> Tensor:
    """A call of a prim func; the compiler allocates what `out` says."""
    raise NotImplementedError


@word
def call_library(
    symbol: str,
    args: Operands,
    out: object,
    *,
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """A call of a C function."""
    raise NotImplementedError


@word
def call_python(function: object, args: Operands, out: object) -> Tensor:
    """A call of ``function(*inputs, *outputs)`` on arrays."""
    raise NotImplementedError


@word
def call_packed(name: str, *args: object, out: object = ()) -> Tensor:
    """A call of a function of the host by the name that it is registered under.

    Python's numbers are scalars, dims sizes, texts and dtypes themselves. `out` is the type of what
    it returns, which is checked; ``()`` is nothing. Calls stay in their order, and none is removed.
    """
    raise NotImplementedError


@word
def call_pure_packed(name: str, *args: object, out: object = ()) -> Tensor:
    """As `call_packed`, of a function without effects: its calls may be removed or shared."""
    raise NotImplementedError


@word
def print(*values: object, format: str = "") -> None:  # noqa: A001 - as Relax calls it
    """Print values when the program comes to it, as ``format.format(*values)`` or with spaces.

    ``print(x, y)`` and ``print(f"{x:.3f}")`` are the same; so is ``R.print(x, y, format="{} {}")``.
    """
    raise NotImplementedError


@word
def assert_op(condition: object, *values: object, format: str = "") -> None:
    """Stop the program with an error where a scalar bool is false; the message is as in `print`.

    ``assert condition, f"got {x}"`` is the same.
    """
    raise NotImplementedError


@word
def text(value: str) -> Tensor:
    """A text as a value, for functions of the host."""
    raise NotImplementedError


@word
def dtype(name: str) -> Tensor:
    """A dtype as a value, for functions of the host: ``R.dtype("float32")``."""
    raise NotImplementedError


@word
def call_engine(
    engine: str,
    subgraph: object,
    args: Operands,
    out: object,
    *,
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """A call of a graph function that an external runtime runs."""
    raise NotImplementedError


@word
def match_cast(value: Tensor, type: object) -> Tensor:
    """Assert a type at run time and bind its new symbols."""
    raise NotImplementedError


@word
def dataflow() -> AbstractContextManager[None]:
    """A stretch of pure bindings that passes may rewrite."""
    raise NotImplementedError


@word
def shape(*dims: Size) -> Tensor:
    """A shape as a value."""
    raise NotImplementedError


@word
def prim(value: Size, dtype: str = "") -> Tensor:
    """A scalar as a value."""
    raise NotImplementedError


@word
def const(value: object, dtype: str = "", shape: tuple[Size, ...] = ()) -> Tensor:
    """An array known at compile time: a value, an array, or the name of one."""
    raise NotImplementedError


@word
def scan(body: object, *, init: Operands = (), inputs: Operands = ()) -> Tensor:
    """A loop over the leading axis of `inputs`; `body` is a plain nested function."""
    raise NotImplementedError


@word
def while_loop(condition: object, body: object, init: Operands) -> Tensor:
    """A loop as long as `condition` holds; both are plain nested functions of the states."""
    raise NotImplementedError
