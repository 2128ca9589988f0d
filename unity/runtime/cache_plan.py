"""What a session has to know of a function with caches, worked out once.

A function with caches takes each one as an array with room behind its rows, gives the same array
back (`FunctionCode.aliases`), and has one parameter that is a shape: the rows in use, and the room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.arrays.aligned import aligned_empty, places
from unity.ir.dtype import Array, dtype
from unity.runtime.bytecode import FunctionCode, ShapeSpec, TensorSpec
from unity.runtime.bytecode.sizes import Size, Slot, evaluate, slots_of


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """A cache: its parameter, the result that it is afterwards, and the axis that grows."""

    name: str
    param: int
    result: int
    axis: int
    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What a session has to know of a function.

    Attributes:
        caches: In the order of the parameters.
        length: The parameter that tells the rows in use and the room.
        rows: The slot of the rows in use.
        room: The slot of the room.
        fixed: The slots of the caches' other axes, which a session settles once (the batch, say).
        sources: Where sizes are found: slot -> (parameter, axis).
    """

    code: FunctionCode
    caches: tuple[CacheInfo, ...]
    length: int
    rows: int
    room: int
    fixed: frozenset[int]
    sources: Mapping[int, tuple[int, int]]

    def ordered(self, inputs: Mapping[str, object]) -> dict[int, object]:
        """A session's inputs by position.

        Raises:
            UnityError: One is missing, unknown, or a cache.
        """
        if not isinstance(inputs, Mapping):
            raise UnityError(f"run takes a dict of inputs by name, got {type(inputs).__name__}")
        own = self.own
        places = {q.name: i for i, q in enumerate(self.code.params)}
        places.update((name, i) for i, name in enumerate(self.code.input_names))
        given: dict[int, object] = {}
        known = ", ".join(self.name(i) for i in range(len(self.code.params)) if i not in own)
        for name, value in inputs.items():
            place = places.get(name)
            if place is None or place in own:
                what = "there is no input" if place is None else "the session itself keeps"
                raise UnityError(f"{what} {name!r}", hint=f"the inputs: {known}")
            given[place] = value
        missing = [i for i in range(len(self.code.params)) if i not in own and i not in given]
        if missing:
            names = ", ".join(map(self.name, missing))
            raise UnityError(f"missing {names}", hint=f"the inputs: {known}")
        return given

    @property
    def own(self) -> frozenset[int]:
        """The parameters that the session gives itself."""
        return frozenset(c.param for c in self.caches) | {self.length}

    def name(self, param: int) -> str:
        """What the user calls a parameter."""
        names = self.code.input_names
        return names[param] if param < len(names) else self.code.params[param].name

    def sizes(self, given: Mapping[int, object]) -> dict[int, int]:
        """The sizes that inputs tell, by slot; wrong inputs are left to the call to refuse."""
        found: dict[int, int] = {}
        for slot, (param, axis) in self.sources.items():
            shape = getattr(given.get(param), "shape", ())
            if axis < len(shape):
                found[slot] = int(shape[axis])
        return found

    def end(self, length: int, sizes: Mapping[int, int]) -> int:
        """How many rows there are after a call on `length` rows."""
        cache = self.caches[0]
        known: dict[int, int] = {**sizes, self.rows: length, self.room: 0}
        return evaluate(cache.shape[cache.axis], self.slots(known))

    def slots(self, sizes: Mapping[int, int]) -> list[int]:
        """Values for all slots; 0 where a size doesn't matter."""
        return [sizes.get(i, 0) for i in range(len(self.code.symbols))]

    def buffers(self, sizes: Mapping[int, int], capacity: int) -> tuple[Array, ...]:
        """New caches, in one piece of memory: it may be given large pages."""
        slots = self.slots(sizes)
        shapes = [
            tuple(capacity if d == c.axis else evaluate(n, slots) for d, n in enumerate(c.shape))
            for c in self.caches
        ]
        kinds = [dtype(c.dtype).numpy for c in self.caches]
        counts = [
            int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            for shape, kind in zip(shapes, kinds, strict=True)
        ]
        begins = places(counts)
        total = begins[-1] + counts[-1] if counts else 0
        try:
            whole = aligned_empty((total,), np.uint8)
        except (MemoryError, ValueError):
            size = total / 2**30
            raise UnityError(f"no memory for caches of {capacity} rows: {size:,.1f} GiB") from None
        made: list[Array] = []
        for shape, kind, count, begin in zip(shapes, kinds, counts, begins, strict=True):
            made.append(whole[begin : begin + count].view(kind).reshape(shape))
        return tuple(made)

    def accepted(
        self, caches: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[list[Array], int, dict[int, int]]:
        """Arrays for the caches in order, their rows, and the sizes of their other axes.

        Raises:
            UnityError: One is missing, unknown or doesn't fit.
        """
        names = [c.name for c in self.caches]
        wrong = [n for n in caches if n not in names] + [n for n in names if n not in caches]
        if wrong:
            what = "missing" if wrong[0] in names else "there is no cache"
            raise UnityError(f"{what} {wrong[0]!r}", hint=f"the caches: {', '.join(names)}")
        arrays = [np.asarray(caches[n]) for n in names]
        sizes: dict[int, int] = {}
        length: int | None = None
        for c, array in zip(self.caches, arrays, strict=True):
            if array.ndim != len(c.shape) or array.dtype != dtype(c.dtype).numpy:
                raise UnityError(
                    f"the cache {c.name!r} is of {c.dtype} and rank {len(c.shape)}, "
                    f"got {array.dtype} of shape {array.shape}"
                )
            length = array.shape[c.axis] if length is None else length
            for d, size in enumerate(c.shape):
                if isinstance(size, Slot) and d != c.axis:
                    sizes.setdefault(size.index, array.shape[d])
            slots = self.slots(sizes)
            expected = tuple(
                length if d == c.axis else evaluate(n, slots) for d, n in enumerate(c.shape)
            )
            if array.shape != expected:
                raise UnityError(f"the cache {c.name!r} must be {expected}, got {array.shape}")
        assert length is not None
        return arrays, length, sizes


def cache_plan(code: FunctionCode) -> CachePlan:
    """The caches of a function.

    Raises:
        UnityError: It has none.
    """
    lengths = [i for i, q in enumerate(code.params) if isinstance(q.spec, ShapeSpec)]
    if not code.aliases or len(lengths) != 1:
        raise UnityError(
            f"{code.name} has no caches to keep", hint="compile the model with caches=True"
        )
    spec = code.params[lengths[0]].spec
    assert isinstance(spec, ShapeSpec)
    match spec.dims:
        case (Slot(rows), Slot(room)):
            pass
        case _:
            raise UnityError(f"{code.params[lengths[0]].name!r} must be the shape (rows, room)")
    caches = tuple(sorted((_info(code, *pair, room) for pair in code.aliases), key=_order))
    inside = {c.param for c in caches}
    sources: dict[int, tuple[int, int]] = {}
    for i, param in enumerate(code.params):
        if i in inside or not isinstance(param.spec, TensorSpec):
            continue
        for axis, size in enumerate(param.spec.shape or ()):
            if isinstance(size, Slot):
                sources.setdefault(size.index, (i, axis))
    fixed = {
        s for c in caches for d, size in enumerate(c.shape) if d != c.axis for s in slots_of(size)
    }
    return CachePlan(code, caches, lengths[0], rows, room, frozenset(fixed), sources)


def _order(cache: CacheInfo) -> int:
    return cache.param


def _info(code: FunctionCode, result: int, param: int, room: int) -> CacheInfo:
    spec = code.params[param].spec
    assert isinstance(spec, TensorSpec)
    assert spec.shape is not None
    assert spec.dtype is not None
    names = code.input_names
    name = names[param] if param < len(names) else code.params[param].name
    axes = [d for d, size in enumerate(spec.shape) if room in slots_of(size)]
    if len(axes) != 1:
        raise UnityError(f"the cache {name!r} must have one axis with room, it has {len(axes)}")
    return CacheInfo(name, param, result, axes[0], spec.shape, spec.dtype)
