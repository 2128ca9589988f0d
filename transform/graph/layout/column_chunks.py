"""Products whose columns are chunks that meet again: gates of a cell, halves of a gated layer.

Comes in: a function over operators. Goes out: for each product whose columns are only read in
chunks of equal width, element by element, how many there are. With the chunks side by side in a
register tile, all that is computed of them is done where they are made (`FuseReaders`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from unity.ir.graph import Body, Call, Expr, Function, Op, Var, VarBinding
from unity.ir.types import TensorType
from unity.ir.visit import bodies_of, graph_children
from unity.op.table import OPS

PRODUCTS = ("matmul", "matmul_packed")
ELEMENTWISE = ("elementwise", "broadcast")


@dataclass(frozen=True, slots=True)
class Reads:
    """What reads the variables of a function.

    Attributes:
        calls: For each variable, the operators called with it, and what their results are called.
        others: Variables that something else reads: a tuple, a loop, the function's result.
    """

    calls: dict[Var, list[tuple[Var, Call]]] = field(
        default_factory=dict[Var, list[tuple[Var, Call]]]
    )
    others: set[Var] = field(default_factory=set[Var])


def column_chunks(function: Function, most: int) -> Mapping[Var, int]:
    """The products of a function that have such columns, and in how many chunks they are.

    Args:
        function: The function, nested bodies included.
        most: How many chunks there may be.

    >>> from unity.script import parse
    >>> module = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 8], w: f32[Tensor, 8, 20]) -> f32[Tensor, 2, 10]:
    ...     both = R.matmul(x, w)
    ...     left = R.strided_slice(both, axes=(1,), begin=(0,), end=(10,))
    ...     right = R.strided_slice(both, axes=(1,), begin=(10,), end=(20,))
    ...     return R.multiply(R.sigmoid(left), right)
    ... ''')
    >>> {v.name: n for v, n in column_chunks(module.graph_functions()["main"], 4).items()}
    {'both': 2}
    """
    reads, products = Reads(), list[Var]()
    _note(function.body, reads, products)
    parted = _parted(reads)
    found = {var: _Columns(reads, parted).chunks(var) for var in products if var in parted}
    return {var: count for var, count in found.items() if 1 < count <= most}


def _note(body: Body, reads: Reads, products: list[Var]) -> None:
    for block in body.blocks:
        for binding in block.bindings:
            value = binding.value
            for inner in bodies_of(value):
                _note(inner, reads, products)
            if not isinstance(value, Call) or not isinstance(value.callee, Op):
                reads.others.update(_variables(value))
                continue
            if isinstance(binding, VarBinding) and value.callee.name in PRODUCTS:
                products.append(binding.var)
            for arg in value.args:
                if isinstance(arg, Var):
                    reads.calls.setdefault(arg, []).append((binding.var, value))
                else:
                    reads.others.update(_variables(arg))
    reads.others.update(_variables(body.result))


def _variables(e: Expr) -> Iterator[Var]:
    if isinstance(e, Var):
        yield e
    for child in graph_children(e):
        yield from _variables(child)


def _parted(reads: Reads) -> frozenset[Var]:
    """Values of which columns are taken, perhaps after elementwise steps.

    What is made of the others needs no look: a network of residual blocks goes on element by
    element from its first product to its end.
    """
    sources: dict[Var, list[Var]] = {}
    waiting: list[Var] = []
    for var, calls in reads.calls.items():
        for result, call in calls:
            if _sliced(call, _width(var) or 0) is not None:
                waiting.append(var)
            elif _is_map(call, var, result):
                sources.setdefault(result, []).append(var)
    found: set[Var] = set()
    while waiting:
        var = waiting.pop()
        if var not in found:
            found.add(var)
            waiting.extend(sources.get(var, []))
    return frozenset(found)


class _Columns:
    """Carries what was seen of one product: where it is cut, and the pieces."""

    def __init__(self, reads: Reads, parted: frozenset[Var]) -> None:
        self.reads = reads
        self.parted = parted
        self.cuts: set[int] = set()
        self.widths: dict[Var, int] = {}
        self.slices: set[Var] = set()

    def chunks(self, product: Var) -> int:
        """In how many chunks it is read; 1 where it is not."""
        width = _width(product)
        if width is None:
            return 1
        self.follow(product, 0, width)
        each = math.gcd(*self.cuts)
        for var, columns in self.widths.items():
            if columns > each and not self.is_only_sliced(var):
                return 1
        for var in self.slices:
            if self.widths[var] == each and not self.is_only_mapped(var):
                return 1
        return width // each

    def follow(self, product: Var, first: int, columns: int) -> None:
        """Note what has some of the columns: values made of it alone, as far as they are parted."""
        waiting = [(product, first, columns)]
        while waiting:
            var, begin, width = waiting.pop()
            if var in self.widths:
                continue
            self.widths[var] = width
            self.cuts |= {begin, begin + width}
            made: list[tuple[Var, int, int]] = []
            for result, call in self.reads.calls.get(var, []) if var in self.parted else ():
                part = _sliced(call, width)
                if part is not None:
                    self.slices.add(result)
                    made.append((result, begin + part[0], part[1] - part[0]))
                elif _is_map(call, var, result):
                    made.append((result, begin, width))
            waiting.extend(reversed(made))

    def is_only_sliced(self, var: Var) -> bool:
        """Whether all that reads a value takes columns of it, perhaps after an elementwise step."""
        calls = self.reads.calls.get(var, [])
        return (
            bool(calls)
            and var not in self.reads.others
            and all(result in self.widths for result, _ in calls)
        )

    def is_only_mapped(self, var: Var) -> bool:
        """Whether all that reads a value goes element by element."""
        calls = self.reads.calls.get(var, [])
        return var not in self.reads.others and all(_is_map(c, var, r) for r, c in calls)


def _width(var: Var) -> int | None:
    if not isinstance(var.type, TensorType) or not isinstance(var.type.shape, tuple):
        return None
    width = var.type.shape[-1] if var.type.shape else None
    return width if isinstance(width, int) and width > 0 else None


def _sliced(call: Call, width: int) -> tuple[int, int] | None:
    """The columns that a call takes out of so many, if that is what it does."""
    if call.callee != Op("strided_slice") or call.attrs["strides"] not in (None, (1,)):
        return None
    (source,) = call.args
    assert isinstance(source, Var)
    axes, begin, end = (call.attrs[name] for name in ("axes", "begin", "end"))
    last = None if not isinstance(source.type, TensorType) else source.type.ndim
    if last is None or axes not in ((last - 1,), (-1,)):
        return None
    match begin, end:
        case (int(first),), (int(past),) if 0 <= first < past <= width:
            return first, past
        case _:
            return None


def _is_map(call: Call, var: Var, result: Var) -> bool:
    """Whether a call computes each element of its result from the same element of a variable."""
    assert isinstance(call.callee, Op)
    if not isinstance(result.type, TensorType) or not isinstance(var.type, TensorType):
        return False
    return result.type.shape == var.type.shape and OPS[call.callee.name].pattern in ELEMENTWISE
