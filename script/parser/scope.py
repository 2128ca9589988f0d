"""What names mean: those bound while parsing, then those of the surrounding Python code."""

from __future__ import annotations

import builtins
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CellType, CodeType, FrameType, FunctionType

from unity.ir.graph import Expr

MISSING = object()


@dataclass(frozen=True, slots=True)
class Named:
    """A function of the module that is being parsed from a text."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """A function that was a closure.

    Attributes:
        name: What it is called in the module.
        params: Of how many parameters it was written.
        seen: What it gets besides.
    """

    name: str
    params: int
    seen: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Undefined:
    """The meaning of a name that only one branch of an if assigned."""


_PACKAGES = frozenset({"F", "jnp", "math", "nn", "np", "numpy", "tf", "topi", "torch"})
"""Names under which packages with functions of tensors are imported."""


class Scope:
    """Frames of names bound by the program, over the names it captures."""

    def __init__(self, captured: Iterable[Mapping[str, object]]) -> None:
        self._captured = tuple(captured)
        self._frames: list[dict[str, object]] = []
        self._begins: list[int] = []  # where frames of nested functions begin

    def push(self, *, function: bool = False) -> None:
        """Enter a suite, maybe that of a nested function."""
        if function:
            self._begins.append(len(self._frames))
        self._frames.append({})

    def pop(self) -> dict[str, object]:
        """Leave a suite; its names are forgotten (and given back)."""
        if self._begins and self._begins[-1] == len(self._frames) - 1:
            self._begins.pop()
        return self._frames.pop()

    @property
    def depth(self) -> int:
        """How many nested functions lie around."""
        return len(self._begins)

    def seen_at(self, depth: int, name: str) -> object:
        """What a name means by now to a function so deep in others, or `MISSING`."""
        end = self._begins[depth] if depth < len(self._begins) else len(self._frames)
        for frame in reversed(self._frames[:end]):
            if name in frame:
                return frame[name]
        return MISSING

    def bind(self, name: str, value: object) -> None:
        """Give a name a meaning in the innermost suite."""
        self._frames[-1][name] = value

    def bind_outermost(self, name: str, value: object) -> None:
        """Give a name a meaning in the whole function."""
        self._frames[0][name] = value

    def lookup(self, name: str) -> object:
        """The meaning of a name, or `MISSING`."""
        found = self.local(name)
        if found is not MISSING:
            return found
        for names in self._captured:
            if name in names:
                return names[name]
        return MISSING

    def local(self, name: str) -> object:
        """The meaning that the program itself gave to a name, or `MISSING`."""
        for frame in reversed(self._frames):
            if name in frame:
                return frame[name]
        return MISSING

    def locals(self) -> Iterator[object]:
        """What the program's own names mean."""
        for frame in self._frames:
            yield from frame.values()

    def innermost(self) -> Mapping[str, object]:
        """The names of the innermost suite."""
        return self._frames[-1]

    def near(self, name: str) -> str | None:
        """A hint with names like the unknown one, or what to write instead of a package's."""
        if name in _PACKAGES:
            return "a program calls R.exp(x) or T.exp(x), and no functions of packages"
        known = {k for names in (*self._frames, *self._captured) for k in names}
        close = difflib.get_close_matches(name, sorted(known), n=2)
        return f"did you mean {' or '.join(close)}?" if close else None


def captured_by(function: FunctionType) -> list[Mapping[str, object]]:
    """The names a function sees: closure cells, the suites it is defined in, globals, builtins.

    The suites are read from the running frames: a name that only an annotation mentions is in no
    closure cell.
    """
    names: list[Mapping[str, object]] = []
    cells: tuple[CellType, ...] = function.__closure__ or ()
    closure: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            closure[name] = cell.cell_contents
        except ValueError:  # a cell still empty: defined below
            continue
    names.append(closure)
    code = function.__code__
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _contains(frame.f_code, code) and frame.f_locals is not function.__globals__:
            names.append(dict(frame.f_locals))
            code = frame.f_code
        frame = frame.f_back
    return [*names, function.__globals__, vars(builtins)]


def _contains(outer: CodeType, inner: CodeType) -> bool:
    """Whether a code is defined somewhere inside another."""
    nested = [const for const in outer.co_consts if isinstance(const, CodeType)]
    return inner in nested or any(_contains(const, inner) for const in nested)
