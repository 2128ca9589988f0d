"""Constants on cache lines, in memory of their own: a vector load that crosses a line costs two.

Arrays come from files and from numpy, which place them anywhere. Those that do not begin on a line
are copied to one piece of memory, and so are those that lie in a model's file or bytes, so that an
executable needs neither, and views with gaps, which kernels would read without them; the others
stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from unity.ir.arrays.aligned import LINE
from unity.ir.arrays.mapped import MappedFile, evict, owner_of
from unity.ir.dtype import Array
from unity.ir.graph import Constant, Expr, Var
from unity.ir.module import IRModule
from unity.ir.visit import map_expr, walk_constants
from unity.runtime.trim import MUCH, trim
from unity.transform.graph.rewriter import BodyRewriter
from unity.transform.passes import map_functions

_PIECE = 1 << 22
"""Bytes of a file that are in memory at once while they are copied."""


def on_lines(constants: Sequence[Array]) -> tuple[Array, ...]:
    """The constants without gaps, each that is as long as a line beginning on one, none in a file.

    >>> odd = np.zeros(65, np.float32)[1:]
    >>> [c.ctypes.data % LINE for c in on_lines([odd, odd + 1])]
    [0, 0]
    """
    places: dict[int, int] = {}
    end = 0
    for k, c in enumerate(constants):
        if _moves(c):
            places[k] = end
            end += -(-c.nbytes // LINE) * LINE
    room = np.empty(end + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    result = list(constants)
    for k, place in places.items():
        c = constants[k]
        moved = room[first + place : first + place + c.nbytes].view(c.dtype).reshape(c.shape)
        _copy(moved, c)
        moved.flags.writeable = c.flags.writeable
        result[k] = moved
    return tuple(result)


def _copy(to: Array, c: Array) -> None:
    """Copy an array piece by piece, each of which is then let go where it lies in a file."""
    target, source = to.reshape(-1), c.reshape(-1)
    step = max(_PIECE // c.itemsize, 1)
    for at in range(0, c.size, step):
        target[at : at + step] = source[at : at + step]
        evict(source[at : at + step])


def _moves(c: Array) -> bool:
    if c.dtype.hasobject:
        return False
    if not c.flags.c_contiguous:
        return True
    if type(c) is not np.ndarray:
        return False
    misaligned = c.nbytes >= LINE and c.ctypes.data % LINE != 0
    return misaligned or isinstance(owner_of(c), MappedFile | bytes)


def with_aligned_constants(module: IRModule) -> IRModule:
    """The module with its constants on cache lines, so that nothing keeps them elsewhere, too."""
    functions = module.graph_functions().values()
    found = {id(c.data): c.data for f in functions for c in walk_constants(f)}
    if sum(c.nbytes for c in found.values() if _moves(c)) > MUCH:
        trim()  # cycles that passes left may hold a weight as it was
    moved = dict(zip(found, on_lines(tuple(found.values())), strict=True))
    if all(moved[k] is found[k] for k in found):
        return module
    return map_functions(module, _Mover(module, moved).function)


class _Mover(BodyRewriter):
    """Replaces the data of constants, by the identity of the array."""

    def __init__(self, module: IRModule, moved: Mapping[int, Array]) -> None:
        super().__init__(module)
        self.moved = moved

    def rewrite(self, var: Var, value: Expr) -> Expr:
        return self.atom(value)

    def atom(self, e: Expr) -> Expr:
        if not isinstance(e, Constant):
            return map_expr(e, self.atom)
        data = self.moved.get(id(e.data), e.data)
        return e if data is e.data else replace(e, data=data)
