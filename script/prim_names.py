"""``T``: the names of prim funcs, typed for editors and type checkers.

At run time nearly every name is a `Marker` that the parser reads; those of annotations are real.
The functions marked `word` never run: the parser binds calls to their signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias, overload

from unity.arguments import public
from unity.ir.dims import SymDim, as_dim
from unity.ir.dtype import dtype

from .annotations import Align, Buffer, Scalar, ScalarSpec, Scope, SizeSpec, Strides
from .marker import Marker, renamed, word

__all__ = ["Buffer", "Scalar", "align", "scalar", "scope", "size", "strides"]


@public
def strides(*values: object) -> Strides:
    """A buffer's strides, in elements: ``f32[Buffer, n, 4, T.strides(s, 1)]``."""
    return Strides(tuple(as_dim(v) for v in values))


@public
def scope(name: str) -> Scope:
    """Which memory a buffer is in: ``"global"``, ``"shared"``, ``"local"``."""
    return Scope(name)


@public
def align(count: int) -> Align:
    """A buffer's alignment in bytes."""
    return Align(count)


@public
def scalar(name: str) -> ScalarSpec:
    """The annotation of a scalar parameter; ``f32[T.Scalar, ()]`` where types are checked."""
    return ScalarSpec(dtype(name))


if TYPE_CHECKING:
    size: TypeAlias = Scalar  # noqa: PYI042
    Size: TypeAlias = Scalar | SymDim | int
    Value: TypeAlias = Scalar | SymDim | int | float | bool
    Domain: TypeAlias = Size | tuple[Size, Size]
    Attributes: TypeAlias = Mapping[str, object] | None

    from .scalars import *  # noqa: F403  all scalar functions, from the stub made of their rows
else:
    size = SizeSpec()

    def __getattr__(name: str) -> Marker:
        """The marker of any other name."""
        if name.startswith("__"):
            raise AttributeError(name)
        from .scalar_names import scalar_name

        return scalar_name(f"T.{name}")

    def __dir__() -> list[str]:
        """What programs write."""
        from .scalar_names import SCALAR_SIGNATURES

        words = [n for n, v in globals().items() if isinstance(v, Marker)]
        scalars = [path.removeprefix("T.") for path in SCALAR_SIGNATURES]
        return sorted({*__all__, "axis", *words, *scalars})


@overload
def grid(a: Size, /) -> Iterator[Scalar]: ...
@overload
def grid(a: Size, b: Size, /) -> Iterator[tuple[Scalar, Scalar]]: ...
@overload
def grid(a: Size, b: Size, c: Size, /) -> Iterator[tuple[Scalar, Scalar, Scalar]]: ...
@overload
def grid(
    a: Size, b: Size, c: Size, d: Size, /
) -> Iterator[tuple[Scalar, Scalar, Scalar, Scalar]]: ...
@overload
def grid(
    a: Size, b: Size, c: Size, d: Size, e: Size, /
) -> Iterator[tuple[Scalar, Scalar, Scalar, Scalar, Scalar]]: ...
@overload
def grid(
    a: Size, b: Size, c: Size, d: Size, e: Size, f: Size, /
) -> Iterator[tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]]: ...
@overload
def grid(
    a: Size, b: Size, c: Size, d: Size, e: Size, f: Size, g: Size, /
) -> Iterator[tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]]: ...
@word
def grid(*extents: Size) -> Iterator[object]:
    """A nest of serial loops, outermost first."""
    raise NotImplementedError


@word
def serial(begin: Size, end: Size | None = None, *, attrs: Attributes = None) -> Iterator[Scalar]:
    """A loop that runs in order."""
    raise NotImplementedError


@word
def parallel(begin: Size, end: Size | None = None, *, attrs: Attributes = None) -> Iterator[Scalar]:
    """A loop whose iterations run on threads."""
    raise NotImplementedError


@word
def vectorized(
    begin: Size, end: Size | None = None, *, attrs: Attributes = None
) -> Iterator[Scalar]:
    """A loop that becomes one vector instruction."""
    raise NotImplementedError


@word
def unroll(begin: Size, end: Size | None = None, *, attrs: Attributes = None) -> Iterator[Scalar]:
    """A loop that is written out."""
    raise NotImplementedError


@word
def thread(
    begin: Size, end: Size | str, axis: str = "", *, attrs: Attributes = None
) -> Iterator[Scalar]:
    """A loop over a device's threads: ``T.thread(n, "threadIdx.x")``."""
    raise NotImplementedError


class axis:  # noqa: N801
    """Iteration variables of a block."""

    @staticmethod
    @word
    def spatial(domain: Domain, value: Size) -> Scalar:
        """An axis whose iterations are independent."""
        raise NotImplementedError

    @staticmethod
    @word
    def reduce(domain: Domain, value: Size) -> Scalar:
        """An axis that is summed (or otherwise reduced) over."""
        raise NotImplementedError

    @staticmethod
    @word
    def opaque(domain: Domain, value: Size) -> Scalar:
        """An axis of which nothing is known."""
        raise NotImplementedError

    @overload
    @staticmethod
    def remap(kinds: str, a: Size, /) -> Scalar: ...
    @overload
    @staticmethod
    def remap(kinds: str, a: Size, b: Size, /) -> tuple[Scalar, Scalar]: ...
    @overload
    @staticmethod
    def remap(kinds: str, a: Size, b: Size, c: Size, /) -> tuple[Scalar, Scalar, Scalar]: ...
    @overload
    @staticmethod
    def remap(
        kinds: str, a: Size, b: Size, c: Size, d: Size, /
    ) -> tuple[Scalar, Scalar, Scalar, Scalar]: ...
    @overload
    @staticmethod
    def remap(
        kinds: str, a: Size, b: Size, c: Size, d: Size, e: Size, /
    ) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar]: ...
    @overload
    @staticmethod
    def remap(
        kinds: str, a: Size, b: Size, c: Size, d: Size, e: Size, f: Size, /
    ) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]: ...
    @overload
    @staticmethod
    def remap(
        kinds: str,
        a: Size,
        b: Size,
        c: Size,
        d: Size,
        e: Size,
        f: Size,
        g: Size,
        /,
    ) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]: ...
    @overload
    @staticmethod
    def remap(kinds: str, loops: list[Size], /) -> tuple[Scalar, ...]: ...
    @staticmethod
    @word
    def remap(kinds: str, *loops: Size | list[Size]) -> object:
        """One axis per loop, of these kinds (``"SSR"``), over the loop's range."""
        raise NotImplementedError


@word
def block(name: str = "", *, attrs: Attributes = None) -> AbstractContextManager[None]:
    """A unit of computation."""
    raise NotImplementedError


@word
def init() -> AbstractContextManager[None]:
    """What a block does before the first step of its reduction."""
    raise NotImplementedError


@word
def suite() -> AbstractContextManager[None]:
    """Braces: lets and allocations inside end with it."""
    raise NotImplementedError


@word
def seq() -> AbstractContextManager[None]:
    """A sequence that stays one, even of a single statement."""
    raise NotImplementedError


@word
def where(condition: object) -> None:
    """The block runs only where this holds."""
    raise NotImplementedError


@word
def reads(*regions: Scalar) -> None:
    """What the block reads; inferred when absent."""
    raise NotImplementedError


@word
def writes(*regions: Scalar) -> None:
    """What the block writes; inferred when absent."""
    raise NotImplementedError


@word
def alloc(
    shape: tuple[Size, ...],
    dtype: str,
    *,
    scope: str = "global",
    strides: tuple[Size, ...] | None = None,
    align: int = 64,
    separators: tuple[int, ...] = (),
) -> Buffer:
    """A buffer that lives until the end of the enclosing suite."""
    raise NotImplementedError


block_alloc = renamed(alloc, "T.block_alloc", "A buffer that belongs to the block.")


@word
def let(value: Value, dtype: str = "") -> Scalar:
    """A name for a value."""
    raise NotImplementedError


@word
def store(buffer: Buffer, index: tuple[Size, ...], value: Value, predicate: object) -> None:
    """A store in the lanes where the predicate holds."""
    raise NotImplementedError


@word
def load(buffer: Buffer, index: tuple[Size, ...], predicate: object) -> Scalar:
    """A load in the lanes where the predicate holds, zero elsewhere."""
    raise NotImplementedError


@word
def evaluate(value: Value) -> None:
    """An expression for its effect."""
    raise NotImplementedError


@word
def assert_(condition: object, message: str) -> None:
    """Stop the kernel unless the condition holds."""
    raise NotImplementedError


@word
def imm(dtype: str, value: float | str) -> Scalar:
    """A literal of a dtype; ``"inf"``, ``"-inf"``, ``"nan"`` are floats."""
    raise NotImplementedError


@word
def cast(dtype: str, value: Value) -> Scalar:
    """A conversion by numpy's rules."""
    raise NotImplementedError


@word
def reinterpret(dtype: str, value: Value) -> Scalar:
    """The value of another dtype that has the same bits: integers, float32, float64, bfloat16."""
    raise NotImplementedError


@word
def call(name: str, *args: Value, dtype: str = "", attrs: Attributes = None) -> Scalar:
    """A call of a scalar function by name."""
    raise NotImplementedError


@word
def call_extern(symbol: str, *args: Value, dtype: str = "") -> Scalar:
    """A call of a foreign C function; within a formula, it is bound to a variable first.

    It is made once each time and in order. In a loop ``T.parallel`` it runs on threads: that the
    function allows it is yours to know. No default rule and no step of a schedule puts it there.
    """
    raise NotImplementedError


@word
def address_of(element: Value) -> Scalar:
    """The address of an element, for a foreign function."""
    raise NotImplementedError


@word
def select(condition: object, then: Value, orelse: Value, *, dtype: str = "") -> Scalar:
    """One of two values; what is not taken is not loaded."""
    raise NotImplementedError


@word
def if_then_else(condition: object, then: Value, orelse: Value, *, dtype: str = "") -> Scalar:
    """As `select`."""
    raise NotImplementedError


@word
def not_(value: object) -> Scalar:
    """Logical negation of a bool."""
    raise NotImplementedError


@word
def ramp(base: Value, stride: Value, lanes: int) -> Scalar:
    """A vector: base, base + stride, ..."""
    raise NotImplementedError


@word
def broadcast(value: Value, lanes: int) -> Scalar:
    """A vector of equal values."""
    raise NotImplementedError
