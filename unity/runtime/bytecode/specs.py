"""What a value is to the program: its dtype, shape and rank as far as they are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias, assert_never

from unity.runtime.records import Range

from .sizes import Size

Rank: TypeAlias = Annotated[int, Range(0, 64)]  # numpy's limit


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor of known or unknown dtype and shape; of an unknown shape the rank may be known."""

    dtype: str | None
    shape: tuple[Size, ...] | None
    rank: Rank | None = None


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """A tuple of sizes as a value."""

    dims: tuple[Size, ...] | None
    rank: Rank | None = None


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A number; `value` when it is known as a size."""

    dtype: str
    value: Size | None = None


@dataclass(frozen=True, slots=True)
class TupleSpec:
    """Several values."""

    fields: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class ObjectSpec:
    """Anything: an arena, a closure, an opaque value."""


Spec: TypeAlias = TensorSpec | ShapeSpec | ScalarSpec | TupleSpec | ObjectSpec


def leaf_specs(spec: Spec) -> Iterator[Spec]:
    """What a value is made of that may be a tuple, left to right."""
    if isinstance(spec, TupleSpec):
        for field in spec.fields:
            yield from leaf_specs(field)
    else:
        yield spec


def spec_sizes(spec: Spec) -> tuple[Size, ...]:
    """The sizes in a spec, in order."""
    match spec:
        case TensorSpec(_, sizes) | ShapeSpec(sizes):
            return sizes or ()
        case ScalarSpec(_, value):
            return () if value is None else (value,)
        case TupleSpec(fields):
            return tuple(s for f in fields for s in spec_sizes(f))
        case ObjectSpec():
            return ()
        case _:
            assert_never(spec)
