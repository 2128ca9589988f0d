"""Every operator of the table: its rows are complete, its compute means what its reference does.

A compute is turned into a prim func through te and run by the interpreter, which knows nothing of
the operator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from unity import te
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim, Symbol, dim, evaluate
from unity.ir.dtype import DType
from unity.ir.symbols.convert import size_var
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.op.effects import ASSERT, PRINT
from unity.op.infer import infer_call
from unity.op.registry import OpDef, Sample
from unity.op.sampling import SizeOf, same, type_of
from unity.op.scalar import MOVES
from unity.op.table import OPS
from unity.sample_checks import computed, kernel_of, mismatch, outputs_of, told

NO_KERNEL = {"shape_of", "tensor_to_shape", "shape_to_tensor", "nonzero"}
"""What the machine does itself, or what has a size that only its data tells."""
COMPUTED = sorted(name for name, op in OPS.items() if op.compute is not None)
EXPANDED = sorted(name for name, op in OPS.items() if op.expand is not None)


def run(op: OpDef, sample: Sample, size: SizeOf, values: dict[Symbol, int]) -> None:
    assert op.reference is not None
    got = computed(op, sample, size, values)
    expected = outputs_of(op.reference(sample.args, sample.attrs))
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        assert type_of(mine) == type_of(theirs)
        assert mismatch(op, mine, theirs) is None


def samples_of(name: str) -> Sequence[Sample]:
    samples = OPS[name].samples
    assert samples is not None
    return samples(7)


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(OPS))
def test_rows_are_complete(name: str) -> None:
    op = OPS[name]
    assert op.name == name
    assert op.doc.strip()
    names = [p.name for p in op.params]
    assert len(set(names)) == len(names)
    if name.startswith("memory.") or name in (PRINT, ASSERT):
        assert op.compute is None
        assert not op.pure
        return
    assert op.reference is not None
    if name in MOVES:  # of numbers, which no sample is
        assert op.compute is None
        return
    assert op.samples is not None
    assert op.samples(0), "an operator is tested by its samples"
    assert (op.compute is None and op.expand is None) == (name in NO_KERNEL)
    assert op.compute is None or op.expand is None
    assert op.pure


def test_rows_that_say_so_make_finite_numbers_of_finite_ones() -> None:
    """Of any that occur, but not of what no float holds: a product of the largest ones."""
    some = np.array([-1e15, -88.0, -3.0, -1e-30, 0.0, 1e-30, 0.5, 89.0, 1e15], np.float32)
    for op in OPS.values():
        if not op.finite:
            continue
        assert op.pattern in ("elementwise", "broadcast")
        assert op.reference is not None
        attrs = samples_of(op.name)[0].attrs
        grid = [g.ravel() for g in np.meshgrid(some, some)]
        args = grid if len(op.params) - len(attrs) == 2 else [some]
        if op.name == "divide":
            args = [a[np.abs(grid[1]) > 1e-20] for a in grid]
        with np.errstate(all="ignore"):
            assert np.isfinite(np.asarray(op.reference(args, attrs))).all(), op.name


@pytest.mark.parametrize("name", sorted(n for n in OPS if OPS[n].samples is not None))
def test_the_reference_has_the_type_of_the_rule(name: str) -> None:
    op = OPS[name]
    assert op.reference is not None
    for sample in samples_of(name):
        result = infer_call(op, [type_of(a) for a in sample.args], sample.attrs)
        value = op.reference(sample.args, sample.attrs)
        if isinstance(result, ShapeType):
            assert isinstance(value, tuple)
            assert result.ndim in (None, len(value))
            continue
        declared = result.fields if isinstance(result, TupleType) else (result,)
        found = [type_of(array) for array in outputs_of(value)]
        for kind, given in zip(declared, found, strict=True):
            assert told(kind, declared, found) == given


@pytest.mark.rotated(1)
@pytest.mark.parametrize("name", COMPUTED + EXPANDED)
def test_the_compute_equals_the_reference(name: str) -> None:
    for sample in samples_of(name):
        run(OPS[name], sample, same, {})


STATIC_ONLY: dict[str, str] = {
    "matmul_interleaved": "the extents of its weight must be known",
    "matmul_words": "the extents of its words and scales must be known",
    "nn.conv2d_interleaved": "which groups make a block must be known",
    "nn.conv2d_winograd": "which transform it is must be known",
    "nn.conv3d_winograd": "which transform it is must be known",
    "tree_ensemble": "how many trees and nodes there are must be known",
    "linked_tree_ensemble": "how many trees and nodes there are must be known",
    "arange": "its samples have numbers for attributes",
    "dims": "its samples have numbers for attributes",
    "image.affine_grid": "that there is a coordinate for each axis must be known",
    "image.grid_sample": "that there are two coordinates must be known",
    "vision.roi_align": "that boxes are rows of five must be known",
    "vision.roi_pool": "that boxes are rows of five must be known",
    "vision.all_class_non_max_suppression": "that boxes are rows of four must be known",
    "vision.multibox_transform_loc": "that boxes are rows of four must be known",
    "dynamic_strided_slice": "that there is a bound for each axis must be known",
    "grad.avg_pool2d_backward": "that there is a gradient for each window must be known",
    "grad.max_pool2d_backward": "that there is a gradient for each window must be known",
    "eye": "its samples have numbers for attributes",
    "hamming_window": "its samples have numbers for attributes",
    "hann_window": "its samples have numbers for attributes",
    "blackman_window": "its samples have numbers for attributes",
}


@pytest.mark.rotated(1)
@pytest.mark.parametrize("name", COMPUTED + EXPANDED)
def test_the_compute_equals_the_reference_with_symbolic_dims(name: str) -> None:
    ran = sum(runs_symbolically(OPS[name], s) for s in samples_of(name))
    if name not in STATIC_ONLY:
        assert ran, "no sample is generic enough for symbols"


def runs_symbolically(op: OpDef, sample: Sample) -> bool:
    """Run a sample with symbols for its sizes; without, if the rule needs to know more of them.

    The symbols are tried bare, then with what their numbers are divisible by.
    """
    for divides in (False, True):
        values: dict[Symbol, int] = {}

        def size(n: int, values: dict[Symbol, int] = values, divides: bool = divides) -> Dim:
            if n == 1:
                return 1  # a symbol does not broadcast
            symbol = dim(f"s{n}", multiple_of=max(n, 1) if divides else 1)
            values[symbol] = n
            return symbol

        try:
            types = [type_of(a, size) for a in sample.args]
            result = infer_call(op, types, sample.attrs)
        except UnityError:
            continue  # what holds of these numbers is not provable of all
        if values and has_known_shape(result):
            run(op, sample, size, values)
            return True
    return False


def has_known_shape(result: Type) -> bool:
    fields = result.fields if isinstance(result, TupleType) else (result,)
    return all(isinstance(f, TensorType) and isinstance(f.shape, tuple) for f in fields)


def test_arange_and_dims_take_symbols() -> None:
    p, t = dim("p"), dim("t")
    cases: list[tuple[str, dict[str, AttrValue], list[float]]] = [
        ("arange", {"start": p, "end": p + t, "step": 1, "dtype": None}, [5, 6, 7]),
        ("arange", {"start": 0, "end": p, "step": 2, "dtype": DType("float32")}, [0.0, 2.0, 4.0]),
        ("dims", {"values": (p, p + t, 7), "dtype": DType("int64")}, [5, 8, 7]),
    ]
    for name, attrs, expected in cases:
        op = OPS[name]
        sample = Sample((), Attrs(attrs))
        result = infer_call(op, (), sample.attrs)
        assert isinstance(result, TensorType)
        func = te.create_prim_func(kernel_of(op, sample))
        (got,) = run_prim_func(func, (), {size_var(p): 5, size_var(t): 3})
        np.testing.assert_array_equal(got, expected)
        assert isinstance(result.shape, tuple)
        assert tuple(evaluate(d, {p: 5, t: 3}) for d in result.shape) == got.shape


def test_the_length_of_a_range_is_a_plain_sum() -> None:
    p, t = dim("p"), dim("t")
    attrs = Attrs({"start": p, "end": p + t, "step": 1, "dtype": None})
    assert infer_call(OPS["arange"], (), attrs) == TensorType((t,), DType("int64"))


def test_where_ops_are_called_wrongly_the_message_names_op_and_types() -> None:
    n = dim("n")
    f32, i64 = DType("float32"), DType("int64")

    def tensor(*shape: Dim, of: DType = f32) -> TensorType:
        return TensorType(tuple(shape), of)

    cases: list[tuple[str, tuple[Type, ...], dict[str, AttrValue], str]] = [
        ("add", (tensor(3), tensor(4)), {}, "add: shapes (3,) and (4,) do not broadcast"),
        ("add", (tensor(n, 3), tensor(n + 1, 3)), {}, "(n, 3) and (n + 1, 3) do not broadcast"),
        ("add", (tensor(3), tensor(3, of=i64)), {}, "one dtype, got float32, int64"),
        ("exp", (tensor(3, of=i64),), {}, "exp: 'x' must be of float dtype, got int64"),
        ("sum", (tensor(3),), {"axis": (1,), "keepdims": False}, "axis 1 is out of range"),
        ("sum", (tensor(3),), {"axis": (0, 0), "keepdims": False}, "name an axis twice"),
        ("sum", (tensor(3),), {"axis": None, "keepdims": 1}, "must be True or False, got 1"),
        ("where", (tensor(3), tensor(3), tensor(3)), {}, "'condition' must be bool, got float32"),
        ("add", (tensor(3), ShapeType((3,))), {}, "'x2' must be a tensor, got a shape"),
        ("add", (tensor(3),), {}, "add: got 1 arguments"),
        ("astype", (tensor(3),), {}, "lacks the attribute 'dtype'"),
    ]
    for name, types, attrs, said in cases:
        with pytest.raises(UnityError) as caught:
            infer_call(OPS[name], types, Attrs(attrs))
        assert said in caught.value.message


def test_unknown_shapes_stay_unknown() -> None:
    f32 = DType("float32")
    known, ranked, unknown = TensorType((2, 3), f32), TensorType(3, f32), TensorType(None, f32)
    add = OPS["add"]
    assert infer_call(add, (known, ranked), Attrs()) == TensorType(3, f32)
    assert infer_call(add, (known, unknown), Attrs()) == TensorType(None, f32)


PRODUCTS: dict[str, tuple[list[tuple[int, ...]], tuple[int, ...], int]] = {
    "matmul": ([(5, 7), (7, 3)], (5, 3), 5 * 7 * 3),
    "matmul_packed": ([(5, 7), (2, 7, 4)], (5, 6), 5 * 7 * 6),
    "nn.conv2d": ([(2, 6, 9, 9), (8, 3, 3, 5)], (2, 8, 7, 5), 2 * 8 * 7 * 5 * 3 * 3 * 5),
    "nn.conv2d_transpose": ([(2, 6, 9, 9), (6, 8, 2, 2)], (2, 8, 18, 18), 2 * 6 * 81 * 8 * 4),
    "nn.conv2d_blocked": (
        [(2, 3, 9, 9, 4), (2, 3, 3, 3, 4, 8)], (2, 2, 7, 7, 8), 2 * 16 * 7 * 7 * 12 * 3 * 3
    ),
    "nn.conv2d_interleaved": (
        [(1, 1, 4, 4, 32), (2, 1, 3, 3, 16, 16, 2)], (1, 2, 2, 2, 16), 32 * 2 * 2 * 32 * 3 * 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_counted_as_the_definition_adds_them_up(name: str) -> None:
    operands, result, count = PRODUCTS[name]
    rule = OPS[name].multiply_adds
    assert rule is not None
    assert rule(operands, result) == count
