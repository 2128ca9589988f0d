"""Caches kept between calls: a session holds them and knows how many of their rows are in use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.runtime.bytecode import FunctionCode
from unity.runtime.cache_plan import cache_plan


@public_class
class Session:
    """The caches of one conversation, kept between calls of a function.

    Each `run` puts its rows behind those of the runs before, in place. A session is for one thread
    at a time (a second one is refused); several sessions of an executable are independent and may
    run at the same time.
    """

    def __init__(self, call: Callable[..., object], code: FunctionCode, capacity: int) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise UnityError(f"capacity must be a positive int, got {capacity!r}")
        self._call = call
        self._plan = cache_plan(code)
        self._capacity = capacity
        self._length = 0
        self._sizes: dict[int, int] = {}
        self._buffers: tuple[Array, ...] = ()
        self._busy = threading.Lock()

    @property
    def capacity(self) -> int:
        """How many rows the caches can hold."""
        return self._capacity

    @property
    def length(self) -> int:
        """How many rows they hold."""
        return self._length

    def run(self, inputs: Mapping[str, object]) -> dict[str, npt.NDArray[Any]]:
        """Call the function with named arrays; its results by name, without the caches.

        Args:
            inputs: Arrays by name: all inputs but the caches.

        Raises:
            UnityError: The caches have no room for the new rows, an input doesn't fit or is
                missing, or the session is running in another thread. The session is as before then.
        """
        given = self._plan.ordered(inputs)
        with self._alone():
            results = self._step(given)
        inside, names = dict(self._plan.code.aliases), self._plan.code.output_names
        return {
            names[k] if k < len(names) else f"output{k}": np.asarray(value)
            for k, value in enumerate(results)
            if k not in inside
        }

    def reset(self, length: int = 0) -> None:
        """Forget all rows but the first `length`.

        Raises:
            UnityError: There are fewer.
        """
        with self._alone():
            if type(length) is not int or not 0 <= length <= self._length:
                raise UnityError(f"can't go back to {length} rows of {self._length}")
            self._length = length

    def fork(self) -> Session:
        """A session of its own that goes on from here; the rows in use are copied."""
        with self._alone():
            other = Session(self._call, self._plan.code, self._capacity)
            other._length, other._sizes = self._length, dict(self._sizes)
            if self._buffers:
                other._buffers = self._moved(self._capacity)
            return other

    def reserve(self, capacity: int) -> None:
        """Give the caches room for `capacity` rows in all; the rows in use are copied.

        Raises:
            UnityError: More than that are in use.
        """
        with self._alone():
            if type(capacity) is not int or capacity < max(self._length, 1):
                raise UnityError(f"can't hold {self._length} rows in a capacity of {capacity}")
            if self._buffers:
                self._buffers = self._moved(capacity)
            self._capacity = capacity

    def caches(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of the rows in use, by the names of the inputs that they continue.

        Raises:
            UnityError: Nothing has run yet that would tell the caches' sizes.
        """
        with self._alone():
            if not self._buffers:
                raise UnityError("the session has no caches before its first run")
            rows = self._rows(self._length)
            return {
                c.name: buffer[at].copy()
                for c, buffer, at in zip(self._plan.caches, self._buffers, rows, strict=True)
            }

    def restore(self, caches: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over rows, as `caches` gives them, in the place of those that there are.

        Args:
            caches: An array for each cache, by the name of the input that it continues.

        Raises:
            UnityError: One is missing, unknown or doesn't fit; the session is as before then.
        """
        with self._alone():
            arrays, length, sizes = self._plan.accepted(caches)
            if length > self._capacity:
                raise UnityError(
                    f"{length} rows are more than the session's capacity of {self._capacity}",
                    hint="session.reserve makes room",
                )
            if sizes != self._sizes or not self._buffers:
                self._buffers = self._plan.buffers(sizes, self._capacity)
            self._sizes, self._length = sizes, length
            for array, buffer, at in zip(arrays, self._buffers, self._rows(length), strict=True):
                buffer[at] = array

    def __repr__(self) -> str:
        return f"Session of {self._plan.code.name}: {self._length} of {self._capacity} rows in use"

    def _step(self, given: Mapping[int, object]) -> tuple[object, ...]:
        plan = self._plan
        sizes = plan.sizes(given)
        fixed = {s: n for s, n in sizes.items() if s in plan.fixed}
        if not self._buffers or any(self._sizes[s] != n for s, n in fixed.items()):
            self._settle(fixed)
        end = plan.end(self._length, sizes)
        if end > self._capacity:
            raise UnityError(
                f"the session's caches hold {self._capacity} rows; {self._length} are in use and "
                f"this call adds {end - self._length}",
                hint="session.reserve makes room, session.reset forgets rows",
            )
        args = [given.get(i) for i in range(len(plan.code.params))]
        for cache, buffer in zip(plan.caches, self._buffers, strict=True):
            args[cache.param] = buffer
        args[plan.length] = (self._length, self._capacity - end)
        result = self._call(*args)
        self._length = end
        return result if isinstance(result, tuple) else (result,)

    def _settle(self, sizes: dict[int, int]) -> None:
        """Allocate the caches once the sizes of all their axes are known."""
        for slot in sorted(self._plan.fixed):
            name, old = self._plan.code.symbols[slot].name, self._sizes.get(slot)
            if slot not in sizes and old is None:
                raise UnityError(
                    f"no input tells the caches' size {name}",
                    hint="give the session its first caches by restore",
                )
            if self._length and old != sizes.get(slot, old):
                raise UnityError(
                    f"{name} is {sizes[slot]} here, but the session's caches are of {name} = {old}",
                    hint="session.reset() forgets them",
                )
        self._sizes = {**self._sizes, **sizes}
        self._buffers = self._plan.buffers(self._sizes, self._capacity)

    def _moved(self, capacity: int) -> tuple[Array, ...]:
        """New buffers with the rows in use."""
        new = self._plan.buffers(self._sizes, capacity)
        for old, buffer, at in zip(self._buffers, new, self._rows(self._length), strict=True):
            buffer[at] = old[at]
        return new

    def _rows(self, length: int) -> list[tuple[slice, ...]]:
        """Where each cache's first rows are."""
        return [(slice(None),) * c.axis + (slice(length),) for c in self._plan.caches]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            raise UnityError(
                "the session is in use by another thread",
                hint="give each thread one of its own: exe.session(), session.fork()",
            )
        try:
            yield
        finally:
            self._busy.release()
