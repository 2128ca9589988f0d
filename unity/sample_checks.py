"""An operator's rows against each other, on its own samples: what a table of operators stands on.

Comes in: a row. Goes out: nothing, or an error that says which sample and which rows disagree. The
type rule must tell the dtype and the shape of what the reference gives, and the compute must give
its numbers: it is made a prim func and run by the interpreter, which knows nothing of operators.
So must the operators that stand for one that has `expand` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.interpreter import interpret, run_prim_func
from unity.ir.dims import Symbol
from unity.ir.dtype import Array, dtype
from unity.ir.graph import Expr, ShapeValue, Tuple
from unity.ir.lattice import unify
from unity.ir.module import IRModule
from unity.ir.symbols.convert import size_var
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import substitute_symbols_in_type
from unity.op.builder import GraphBuilder
from unity.op.emitter import Emitter
from unity.op.infer import infer_call
from unity.op.registry import ComputeArg, OpDef, RefArg, Sample
from unity.op.sampling import SizeOf, same, type_of

NARROW = {"float16": 2e-3, "bfloat16": 2e-2}
"""What dtypes may be off whose last place is more than what the operator allows."""


def arrays_of(args: Sequence[RefArg]) -> list[Array]:
    """The arrays of a sample, those in tuples too."""
    found: list[Array] = []
    for arg in args:
        items = (arg,) if isinstance(arg, np.ndarray) else arg
        found += [a for a in items if isinstance(a, np.ndarray)]
    return found


def outputs_of(value: RefArg | tuple[object, ...]) -> tuple[Array, ...]:
    """The arrays that a reference gave."""
    if isinstance(value, np.ndarray):
        return (value,)
    return tuple(v for v in value if isinstance(v, np.ndarray))


def told(kind: Type, fields: Sequence[Type], found: Sequence[Type]) -> Type:
    """What a type rule tells of a result, its fresh symbols being what the results have there."""
    try:
        return substitute_symbols_in_type(kind, unify(fields, found))
    except UnityError:
        return kind


def kernel_of(op: OpDef, sample: Sample, size: SizeOf = same) -> tuple[te.Tensor, ...]:
    """The placeholders of a sample's tensors, then what the compute makes of them."""
    assert op.compute is not None
    types = [type_of(a, size) for a in sample.args]
    result = infer_call(op, types, sample.attrs)
    inputs: list[te.Tensor] = []

    def hold(kind: TensorType) -> te.Tensor:
        assert isinstance(kind.shape, tuple)
        assert kind.dtype is not None
        inputs.append(te.placeholder(kind.shape, kind.dtype, f"x{len(inputs)}"))
        return inputs[-1]

    args: list[ComputeArg] = []
    for kind in types:
        match kind:
            case TensorType():
                args.append(hold(kind))
            case TupleType(fields):
                args.append(tuple(hold(f) for f in fields if isinstance(f, TensorType)))
            case _:
                pass
    made = op.compute(args, sample.attrs, result)
    return (*inputs, *(made if isinstance(made, tuple) else (made,)))


def expansion_of(op: OpDef, sample: Sample, size: SizeOf = same) -> IRModule:
    """A module of one function, ``main``, of what the row's `expand` puts in place of a call."""
    assert op.expand is not None
    builder = GraphBuilder()
    args: list[Expr] = []
    for k, kind in enumerate(type_of(a, size) for a in sample.args):
        match kind:
            case TupleType(fields):
                parts = [builder.param(f"x{k}_{i}", f) for i, f in enumerate(fields)]
                args.append(Tuple(tuple(parts)))
            case ShapeType(tuple(dims)):
                args.append(ShapeValue(dims))
            case _:
                args.append(builder.param(f"x{k}", kind))
    result = infer_call(op, [type_of(a, size) for a in sample.args], sample.attrs)
    emitter = Emitter(builder, "y", None)
    return IRModule({"main": builder.finish(op.expand(emitter, args, sample.attrs, result))})


def computed(
    op: OpDef, sample: Sample, size: SizeOf = same, values: dict[Symbol, int] | None = None
) -> tuple[Array, ...]:
    """What the compute, or the expansion, gives for a sample, interpreted.

    Args:
        op: The row.
        sample: Its arguments.
        size: The dims that stand for its sizes.
        values: What the symbols among them are.
    """
    if op.compute is None:
        made = interpret(expansion_of(op, sample, size), "main", arrays_of(sample.args))
        assert isinstance(made, np.ndarray | tuple)
        return outputs_of(made)
    func = te.create_prim_func(kernel_of(op, sample, size))
    sizes = {size_var(s): n for s, n in (values or {}).items()}
    return tuple(run_prim_func(func, arrays_of(sample.args), sizes))


def allowed_error(op: OpDef, kind: np.dtype[np.generic]) -> float:
    """How far, relative and absolute, results of a dtype may be off; 0 of integers."""
    known = dtype(kind)
    return NARROW.get(known.name, op.tolerance) if known.is_float else 0.0


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a result is not what it should be.

    Attributes:
        index: Which element.
        got: What it is.
        expected: What it should be.
    """

    index: tuple[int, ...]
    got: object
    expected: object


def mismatch(op: OpDef, got: Array, expected: Array) -> Mismatch | None:
    """The element that is furthest off, if one is further than the operator allows."""
    allowed = allowed_error(op, expected.dtype)
    if not allowed:
        wrong = np.asarray(got != expected, np.float64)
    else:
        mine, theirs = got.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            off = np.abs(mine - theirs) - allowed * (1 + np.abs(theirs))
        equal = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        wrong = np.where(equal, -np.inf, np.nan_to_num(off, nan=np.inf))
    if not wrong.size or wrong.max() <= 0:
        return None
    index = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    return Mismatch(index, got[index], expected[index])


def check_samples(op: OpDef, seed: int = 0) -> None:
    """Compare an operator's rows on its samples.

    Raises:
        UnityError: Two rows disagree; says about which sample.
    """
    assert op.samples is not None
    for number, sample in enumerate(op.samples(seed)):
        kinds = ", ".join(str(type_of(a)) for a in sample.args)
        place = f"{op.name}, sample {number} ({kinds}{', ' if kinds else ''}{_attrs(sample)})"
        try:
            _check(op, sample, place)
        except UnityError as error:
            if error.message.startswith(place):
                raise
            raise UnityError(f"{place}: {error.message}", error.span, error.hint) from error


def _attrs(sample: Sample) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in sample.attrs.items())


def _check(op: OpDef, sample: Sample, place: str) -> None:
    assert op.reference is not None
    result = infer_call(op, [type_of(a) for a in sample.args], sample.attrs)
    fields = result.fields if isinstance(result, TupleType) else (result,)
    given: object = op.reference(sample.args, sample.attrs)
    items = given if isinstance(given, tuple) else (given,)
    if not items or not all(isinstance(v, np.ndarray) for v in items):
        raise UnityError(
            f"{place}: the reference must give an array or a tuple of arrays, got {given!r}"
        )
    expected = tuple(v for v in items if isinstance(v, np.ndarray))
    if len(fields) != len(expected):
        raise UnityError(
            f"{place}: the type rule tells of {len(fields)} results, "
            f"the reference gives {len(expected)}"
        )
    found = [type_of(array) for array in expected]
    for kind, got_kind in zip(fields, found, strict=True):
        if told(kind, fields, found) != got_kind:
            raise UnityError(
                f"{place}: the type rule says {kind}, the reference gives {got_kind}",
                hint="both must agree in dtype and shape: astype the reference's result",
            )
    if op.compute is None and op.expand is None:
        return
    got = computed(op, sample)
    for k, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if type_of(mine) != type_of(theirs):
            raise UnityError(
                f"{place}: the compute gives {type_of(mine)}, the reference {type_of(theirs)}"
            )
        wrong = mismatch(op, mine, theirs)
        if wrong is not None:
            which = f" of result {k}" if len(expected) > 1 else ""
            raise UnityError(
                f"{place}: the compute gives {wrong.got} at {wrong.index}{which}, the reference "
                f"{wrong.expected}",
                hint=f"they may differ by {allowed_error(op, theirs.dtype):g}, `OpDef.tolerance`",
            )
