"""Library functions: C functions that compute what a pattern of ops computes.

A function is described by the kernel that calls it, a prim func whose body is ``T.call_extern``:
how buffers, strides and sizes become C arguments stands there, in the language. The shapes and
dtypes it takes are the kernel's own signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dtype import Array
from unity.ir.lattice import unify
from unity.ir.prim_expr import imm
from unity.ir.signature import buffer_type
from unity.ir.stmt import Block, Buffer, PrimFunc, Range, Region
from unity.ir.types import TensorType
from unity.ir.visiting.visit_stmt import walk_stmt
from unity.script import ScriptPrimFunc

from ...pattern import Match, Pattern, capture_names

KernelRule: TypeAlias = Callable[[Sequence[TensorType], Sequence[TensorType], Attrs], PrimFunc]
"""(input types, output types, attributes) -> the kernel; raises `UnityError` for what it can't."""


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A library's way to compute something.

    Attributes:
        name: ``library.function``, as in ``R.call_library``.
        kernel: Makes the kernel that calls it, for the types of a site.
        oracle: What it computes, in numpy: ``oracle(*inputs, **attrs)``, one array or a tuple.
        pattern: What it can stand for; its captures named in `inputs` are the call's arguments.
        inputs: Names of captures, in the order of the kernel's buffers.
        attrs: The call's attributes, from the match.
        missing: Why it can't be used here (the library is not installed); None if it can.
        doc: What it does.
    """

    name: str
    kernel: KernelRule
    oracle: Callable[..., Array | tuple[Array, ...]]
    pattern: Pattern | None = None
    inputs: tuple[str, ...] = ()
    attrs: Callable[[Match], Attrs] = lambda match: NO_ATTRS
    missing: Callable[[], str | None] = lambda: None
    doc: str = ""


LIBRARY_FUNCTIONS: dict[str, LibraryFunction] = {}
"""Those that are registered, by name; a later one comes first where several fit."""


def register_library_function(function: LibraryFunction) -> LibraryFunction:
    """Make a function known; one of the same name is replaced.

    Raises:
        UnityError: Its inputs are names that its pattern doesn't capture.
    """
    if function.pattern is not None:
        names = capture_names(function.pattern)
        lost = [name for name in function.inputs if name not in names]
        if lost:
            raise UnityError(
                f"{function.name}: its pattern captures no {', '.join(map(repr, lost))}",
                hint=f"it captures {', '.join(sorted(names)) or 'nothing'}",
            )
    LIBRARY_FUNCTIONS[function.name] = function
    return function


def library_function(name: str) -> LibraryFunction:
    """A registered function.

    Raises:
        UnityError: There is none of that name.
    """
    if name not in LIBRARY_FUNCTIONS:
        known = ", ".join(LIBRARY_FUNCTIONS) or "(none)"
        raise UnityError(f"no library function {name!r} is registered", hint=f"there are: {known}")
    return LIBRARY_FUNCTIONS[name]


def oracles() -> dict[str, Callable[..., None]]:
    """What each function means to the interpreter, ``fn(*inputs, *outputs, **attrs)``."""
    return {name: _into(f.oracle) for name, f in LIBRARY_FUNCTIONS.items()}


def _into(oracle: Callable[..., Array | tuple[Array, ...]]) -> Callable[..., None]:
    def run(*arrays: Array, outputs: int = 1, **attrs: object) -> None:
        results = oracle(*arrays[: len(arrays) - outputs], **attrs)
        flat = results if isinstance(results, tuple) else (results,)
        for target, value in zip(arrays[len(arrays) - outputs :], flat, strict=True):
            np.copyto(target, value)

    return run


@dataclass(frozen=True, slots=True)
class FixedKernel:
    """The rule of a function whose kernel is one prim func, for all types that it takes.

    Attributes:
        func: The kernel.
        types: Of its buffers, inputs and outputs.
    """

    func: PrimFunc
    types: tuple[TensorType, ...]

    def __call__(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType], attrs: Attrs
    ) -> PrimFunc:
        """The kernel.

        Raises:
            UnityError: It takes other types.
        """
        given = [*inputs, *outputs]
        if len(given) != len(self.types):
            raise UnityError(
                f"it takes {len(self.types)} tensors, inputs and outputs, not {len(given)}"
            )
        unify(self.types, given)
        return self.func


def fixed_kernel(written: ScriptPrimFunc[...] | PrimFunc) -> FixedKernel:
    """The rule of a function whose kernel is one prim func, with symbols for what may differ."""
    func = sealed(written if isinstance(written, PrimFunc) else written.func)
    return FixedKernel(func, tuple(map(buffer_type, func.buffers)))


def sealed(func: PrimFunc) -> PrimFunc:
    """The kernel as no pass looks into it: opaque, laid out as it is, in a block of all it touches.

    The inputs are read and the outputs written as wholes.
    """
    marks = Attrs(num_outputs=1, private=True).with_(**func.attrs)
    marks = marks.with_(pattern="opaque", scheduled=True)
    body = func.body
    if not any(isinstance(s, Block) for s in walk_stmt(body)):
        inputs = len(func.buffers) - int(str(marks["num_outputs"]))
        regions = [_whole(b) for b in func.buffers]
        body = Block("foreign", (), tuple(regions[:inputs]), tuple(regions[inputs:]), body)
    return replace(func, attrs=marks, body=body)


def _whole(buffer: Buffer) -> Region:
    return Region(buffer, tuple(Range(imm(0), extent) for extent in buffer.shape))
