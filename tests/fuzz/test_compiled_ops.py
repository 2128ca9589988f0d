"""Every operator through the whole compiler, against its reference, static and symbolic dims.

The samples of several operators are functions of one module, so that they are compiled in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.ir.dims import Dim, dim
from unity.ir.dtype import Array, dtype
from unity.ir.graph import Call, Expr, Function, Op, ShapeValue, Tuple
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType
from unity.ir.visit import type_symbols
from unity.op.builder import GraphBuilder
from unity.op.registry import SUM_OF_PRODUCTS, OpDef, RefArg, Sample
from unity.op.table import OPS

COMPUTED = sorted(name for name, op in OPS.items() if op.compute or op.expand)
BATCHES = [COMPUTED[i : i + 10] for i in range(0, len(COMPUTED), 10)]
SizeOf = Callable[[int], Dim]
SEED = 11


@dataclass(frozen=True)
class Case:
    """A function that makes one call, what to give it and what it must return.

    Attributes:
        scales: What errors are relative to, where that is not the result itself.
    """

    function: Function
    arrays: tuple[Array, ...]
    expected: tuple[Array, ...]
    scales: tuple[Array, ...] = ()


def case(op: OpDef, sample: Sample, size: SizeOf) -> Case:
    """The function of a sample, its extents given by `size`."""
    builder = GraphBuilder()
    arrays: list[Array] = []

    def param(array: Array) -> Expr:
        arrays.append(array)
        kind = TensorType(tuple(size(n) for n in array.shape), dtype(array.dtype))
        return builder.param(f"x{len(arrays)}", kind)

    def argument(value: RefArg) -> Expr:
        if isinstance(value, np.ndarray):
            return param(value)
        fields = [v for v in value if isinstance(v, np.ndarray)]
        if fields:
            return Tuple(tuple(param(v) for v in fields))
        dims = [int(v) for v in value if isinstance(v, int)]
        return ShapeValue(tuple(size(n) if n >= 0 else n for n in dims))

    args = tuple(argument(a) for a in sample.args)
    result = builder.emit(Call(Op(op.name), args, sample.attrs))
    assert op.reference is not None
    expected = op.reference(sample.args, sample.attrs)
    scales = arrays_of(op.reference(magnitudes(sample.args), sample.attrs)) if op.sums else ()
    return Case(builder.finish(result), tuple(arrays), arrays_of(expected), scales)


def magnitudes(args: Sequence[RefArg]) -> list[RefArg]:
    """Arguments whose products are all added up."""
    return [np.abs(a) if isinstance(a, np.ndarray) else a for a in args]


def arrays_of(value: RefArg) -> tuple[Array, ...]:
    if isinstance(value, np.ndarray):
        return (value,)
    return tuple(v for v in value if isinstance(v, np.ndarray))


def is_bound(function: Function) -> bool:
    """Whether the parameters tell every symbol."""
    known = {s for p in function.params for s in type_symbols(p.type)}
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            used = set(type_symbols(binding.var.type))
            if isinstance(value, Call):
                for arg in value.args:
                    if isinstance(arg, ShapeValue):
                        used |= set(type_symbols(ShapeType(arg.dims)))
            if not used <= known:
                return False
    return True


def run(cases: Sequence[tuple[OpDef, Case]]) -> None:
    module = IRModule({f"case{n}": c.function for n, (_, c) in enumerate(cases)})
    executable = unity.compile(module, cache=None)
    for n, (op, c) in enumerate(cases):
        got = executable[f"case{n}"](*c.arrays)
        results = got if isinstance(got, tuple) else (got,)
        for k, (mine, theirs) in enumerate(zip(results, c.expected, strict=True)):
            scale = c.scales[k] if c.scales else None
            compare(op, np.asarray(mine), theirs, f"{op.name}: {c.function}", scale)


def compare(op: OpDef, got: Array, expected: Array, what: str, scale: Array | None) -> None:
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, what
    kind = dtype(expected.dtype)
    if not kind.is_float:
        np.testing.assert_array_equal(got, expected, what)
        return
    if scale is not None and kind.name == "float32":
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        assert (error <= SUM_OF_PRODUCTS * scale.astype(np.float64)).all(), what
        return
    # Half a dozen units in the last place of narrow dtypes, else what the op allows.
    allowed = {"float16": 2e-3, "bfloat16": 2e-2}.get(kind.name, op.tolerance)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), allowed, allowed, err_msg=what
    )


def samples_of(name: str, most: int) -> Sequence[Sample]:
    """Some of an operator's samples, evenly taken; `tests/op/test_registry.py` runs them all."""
    samples = OPS[name].samples
    assert samples is not None
    found = samples(SEED)
    return found[:: -(-len(found) // most)]


@pytest.mark.long("compiles an eighth of all operators at once")
@pytest.mark.rotated(4)
@pytest.mark.parametrize("names", BATCHES, ids=lambda names: names[0])
def test_static(names: Sequence[str]) -> None:
    run([(OPS[n], case(OPS[n], s, lambda n: n)) for n in names for s in samples_of(n, most=8)])


@pytest.mark.rotated(8)
@pytest.mark.parametrize("names", BATCHES, ids=lambda names: names[0])
def test_symbolic(names: Sequence[str]) -> None:
    """Equal extents share a symbol, so that the type rules accept what they accept of numbers."""
    cases: list[tuple[OpDef, Case]] = []
    for op in map(OPS.__getitem__, names):
        for sample in samples_of(op.name, most=2):
            try:
                made = case(op, sample, lambda n: n if n == 1 else dim(f"s{n}"))
            except UnityError:
                continue  # what holds of these numbers is not provable of all
            if is_bound(made.function):
                cases.append((op, made))
    if cases:
        run(cases)
