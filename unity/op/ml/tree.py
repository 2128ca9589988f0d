"""Ensembles of decision trees: each row goes down every tree, and what the leaves hold is joined.

Two forms. `tree_ensemble` has complete trees, whose nodes lie level by level, so that a node's
children are told by its number; what they take doubles with each level. `linked_tree_ensemble` has
trees of any form, whose nodes say where their children are. Both take a fixed number of steps: a
block that goes down is a reduction over levels, in order, so that schedules may take several trees
at once. (Hummingbird's perfect tree traversal and tree traversal, Nakandala et al., OSDI 2020.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import always_ge
from unity.ir.dtype import FLOAT32, FLOAT64, INT32, INT64, Array
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import Block, BlockAxis, Buffer, For, Range, Stmt, Store
from unity.ir.types import TensorType, Type
from unity.op.argument import tensor, type_text
from unity.op.attribute import FLAG, INT, TEXT
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    flag_attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

JOINS = ("sum", "min", "max")
"""How the values of the leaves of a group's trees are joined."""
_SHARED = (attr("join", TEXT, "sum"), attr("checked", FLAG, False))
_COMPLETE = (Param("x"), Param("nodes"), Param("values"), *_SHARED)
_LINKED = (
    Param("x"), Param("nodes"), Param("roots"), Param("values"), attr("depth", INT), *_SHARED,
)  # fmt: skip


def complete_records(features: Array, thresholds: Array) -> Array:
    """The nodes of complete trees as `tree_ensemble` takes them.

    Args:
        features: ``[..., nodes]``, which column of a row each node looks at.
        thresholds: ``[..., nodes]``, float32 or float64: what it compares with.

    Returns:
        ``[..., nodes, 2]`` of the dtype of `thresholds`: the threshold, and the bits of the index.
    """
    return np.stack([thresholds, _as_bits(features, thresholds)], -1)


def linked_records(features: Array, thresholds: Array, left: Array, values: Array) -> Array:
    """The nodes of linked trees as `linked_tree_ensemble` takes them; all arguments ``[nodes]``.

    Args:
        features: Which column of a row each node looks at.
        thresholds: What it compares with, float32 or float64; NaN in leaves.
        left: The child for what is at most that; the other one follows it. In leaves, the node
            before: every row then comes back to the leaf.
        values: Of leaves, their row of values.

    Returns:
        ``[nodes, 4]`` of the dtype of `thresholds`: the threshold, and the bits of the others.
    """
    return np.stack([thresholds, *(_as_bits(a, thresholds) for a in (features, left, values))], -1)


def _as_bits(indices: Array, like: Array) -> Array:
    return indices.astype(f"int{like.dtype.itemsize * 8}").view(like.dtype)


def _from_bits(records: Array, column: int) -> npt.NDArray[np.int64]:
    bits = np.ascontiguousarray(records).view(f"int{records.dtype.itemsize * 8}")
    return bits[..., column].astype(np.int64)


# Type rules.


def _shape(call: OpCall, found: TensorType, what: str) -> tuple[object, ...]:
    if not isinstance(found.shape, tuple):
        raise call.error(f"the shape of {what} must be known, got {type_text(found)}")
    return found.shape


def _rows(call: OpCall) -> TensorType:
    x, nodes = tensor(call, 0), tensor(call, 1)
    if x.dtype not in (FLOAT32, FLOAT64) or nodes.dtype != x.dtype:
        raise call.error(
            f"'x' and 'nodes' must both be float32 or both float64, got {x.dtype} and {nodes.dtype}"
        )
    if call.attrs["join"] not in JOINS:
        raise call.error(f"'join' must be one of {', '.join(JOINS)}, got {call.attrs['join']!r}")
    _shape(call, x, "'x'")
    if x.ndim != 2 or not isinstance(x.shape, tuple) or not always_ge(x.shape[1], 1):
        raise call.error(
            f"'x' must have rows and at least one column, got {type_text(x)}",
            'say dim("columns", min=1) of a number of columns that is unknown',
        )
    return x


def _values(call: OpCall, index: int, rank: int) -> TensorType:
    values = tensor(call, index)
    if values.dtype not in (FLOAT32, FLOAT64) or values.ndim != rank:
        raise call.error(f"'values' must be floats of rank {rank}, got {type_text(values)}")
    return values


def _complete_infer(call: OpCall) -> Type:
    x, nodes, values = _rows(call), tensor(call, 1), _values(call, 2, 4)
    shape, leaves = _shape(call, nodes, "'nodes'"), _shape(call, values, "'values'")
    count = shape[2] if len(shape) == 4 else None
    if not isinstance(count, int) or shape[3] != 2 or count < 2 or count & (count - 1):
        raise call.error(
            "'nodes' must be [groups, trees, nodes, 2] with a power of two of nodes, 2 or more, "
            f"got {type_text(nodes)}"
        )
    if leaves[:3] != shape[:3]:
        raise call.error(
            f"'values' must have a row for each of {type_text(nodes)}, got {type_text(values)}"
        )
    _require_trees(call, nodes, shape[1])
    assert isinstance(x.shape, tuple)
    assert isinstance(nodes.shape, tuple)
    assert isinstance(values.shape, tuple)
    return TensorType((x.shape[0], nodes.shape[0], values.shape[3]), values.dtype)


def _require_trees(call: OpCall, of: TensorType, trees: object) -> None:
    if not isinstance(trees, int) or trees < 1:
        raise call.error(f"there must be a known number of trees, 1 or more, got {type_text(of)}")


def _linked_infer(call: OpCall) -> Type:
    x, nodes, roots, values = _rows(call), tensor(call, 1), tensor(call, 2), _values(call, 3, 2)
    shape = _shape(call, nodes, "'nodes'")
    if len(shape) != 2 or shape[1] != 4 or not isinstance(shape[0], int) or shape[0] < 1:
        raise call.error(f"'nodes' must be [nodes, 4], got {type_text(nodes)}")
    if roots.dtype not in (INT32, INT64) or len(_shape(call, roots, "'roots'")) != 2:
        raise call.error(f"'roots' must be int32 or int64 [groups, trees], got {type_text(roots)}")
    if not isinstance(values.shape, tuple) or not always_ge(values.shape[0], 1):
        raise call.error(f"'values' must have at least one row, got {type_text(values)}")
    if call.integer("depth") < 1:
        raise call.error(f"'depth' must be 1 or more, got {call.integer('depth')}")
    assert isinstance(x.shape, tuple)
    assert isinstance(roots.shape, tuple)
    _require_trees(call, roots, roots.shape[1])
    return TensorType((x.shape[0], roots.shape[0], values.shape[1]), values.dtype)


# Kernels.


def _descent(
    inputs: Sequence[te.Tensor],
    extents: Sequence[PrimExpr],
    depth: int,
    begin: Callable[[Sequence[Buffer], PrimExpr, PrimExpr], PrimExpr],
    step: Callable[[Sequence[Buffer], PrimExpr, PrimExpr, PrimExpr, PrimExpr], PrimExpr],
) -> te.Tensor:
    """Where each row ends in each tree, [rows, groups, trees].

    Args:
        inputs: What is read.
        extents: Rows, groups, trees.
        depth: Steps from a root.
        begin: (inputs, group, tree) -> the root.
        step: (inputs, row, group, tree, node) -> the next node.
    """

    def body(read: Sequence[Buffer], made: Sequence[Buffer]) -> Stmt:
        (place,) = made
        names = ("row", "group", "tree", "level")
        axes = tuple(
            BlockAxis(PrimVar(f"v{n}"), "R" if n == "level" else "S", Range(imm(0), e), PrimVar(n))
            for n, e in zip(names, (*extents, imm(depth)), strict=True)
        )
        at = row, group, tree = axes[0].var, axes[1].var, axes[2].var
        init = Store(place, at, begin(read, group, tree))
        update = Store(place, at, step(read, row, group, tree, Load(place, at)))
        reads, writes = block_regions(update, init, [a.var for a in axes])
        stmt: Stmt = Block("descend", axes, reads, writes, update, init)
        for axis in reversed(axes):
            assert isinstance(axis.value, PrimVar)
            stmt = For(axis.value, imm(0), axis.domain.extent, stmt)
        return stmt

    (found,) = te.extern([(tuple(extents), INT64)], inputs, body, "place")
    return found


def _read_index(record: PrimExpr, extent: PrimExpr, checked: bool) -> PrimExpr:
    """An index out of a record; clamped, unless whoever made the records has checked them."""
    index = te.cast(te.bits(record), INT64)
    return index if checked else te.min_(te.max_(index, 0), extent - 1)


def _exceeds(x: Buffer, row: PrimExpr, feature: PrimExpr, threshold: PrimExpr) -> PrimExpr:
    """1 if a row goes to the right, as NaN does."""
    return te.cast(te.not_(Load(x, (row, feature)) <= threshold), INT64)


def _joined(
    place: te.Tensor,
    columns: PrimExpr,
    attrs: Attrs,
    value: Callable[[PrimExpr, PrimExpr, PrimExpr, PrimExpr], PrimExpr],
) -> te.Tensor:
    """The values of the leaves joined over trees; `value` is (group, tree, place, column) -> it."""
    join = {"sum": te.sum, "min": te.min, "max": te.max}[str(attrs["join"])]
    tree = te.reduce_axis(place.shape[2], "tree")
    return te.compute(
        (*place.shape[:2], columns),
        lambda row, group, column: join(
            value(group, tree.var, place[row, group, tree.var], column), axis=[tree]
        ),
        "trees",
    )


def _tensors(args: Sequence[ComputeArg]) -> list[te.Tensor]:
    return [a for a in args if isinstance(a, te.Tensor)]


def _complete_compute(args: Sequence[ComputeArg], attrs: Attrs, _result: Type) -> te.Tensor:
    x, nodes, values = _tensors(args)
    leaves = _static(nodes.shape[2])
    checked = flag_attr(attrs, "checked")

    def step(
        read: Sequence[Buffer], row: PrimExpr, group: PrimExpr, tree: PrimExpr, node: PrimExpr
    ) -> PrimExpr:
        rows, records = read
        threshold, bits = (Load(records, (group, tree, node, imm(k))) for k in range(2))
        feature = _read_index(bits, rows.shape[1], checked)
        return node * 2 + _exceeds(rows, row, feature, threshold)

    place = _descent(
        [x, nodes],
        (x.shape[0], nodes.shape[0], nodes.shape[1]),
        leaves.bit_length() - 1,
        lambda *_: imm(1),
        step,
    )
    return _joined(
        place,
        values.shape[3],
        attrs,
        lambda group, tree, leaf, column: values[group, tree, leaf - leaves, column],
    )


def _static(extent: PrimExpr) -> int:
    value = getattr(extent, "value", None)
    assert isinstance(value, int)
    return value


def _linked_compute(args: Sequence[ComputeArg], attrs: Attrs, _result: Type) -> te.Tensor:
    x, nodes, roots, values = _tensors(args)
    checked = flag_attr(attrs, "checked")
    count = nodes.shape[0]

    def inside(node: PrimExpr) -> PrimExpr:
        return node if checked else te.min_(te.max_(node, 0), count - 1)

    def begin(read: Sequence[Buffer], group: PrimExpr, tree: PrimExpr) -> PrimExpr:
        return inside(te.cast(Load(read[2], (group, tree)), INT64))

    def step(
        read: Sequence[Buffer], row: PrimExpr, _group: PrimExpr, _tree: PrimExpr, node: PrimExpr
    ) -> PrimExpr:
        rows, records, _ = read
        threshold, bits, left = (Load(records, (node, imm(k))) for k in range(3))
        feature = _read_index(bits, rows.shape[1], checked)
        child = te.cast(te.bits(left), INT64) + _exceeds(rows, row, feature, threshold)
        return inside(child)

    place = _descent(
        [x, nodes, roots],
        (x.shape[0], roots.shape[0], roots.shape[1]),
        int_attr(attrs, "depth"),
        begin,
        step,
    )

    def value(_group: PrimExpr, _tree: PrimExpr, leaf: PrimExpr, column: PrimExpr) -> PrimExpr:
        return values[_read_index(nodes[leaf, 3], values.shape[0], checked), column]

    return _joined(place, values.shape[1], attrs, value)


# References.


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _right(x: Array, features: npt.NDArray[np.int64], thresholds: Array) -> npt.NDArray[np.int64]:
    """1 for rows that go to the right, for a node of each row, group and tree."""
    columns = np.clip(features, 0, x.shape[1] - 1)
    stays = np.less_equal(x[np.arange(len(x))[:, None, None], columns], thresholds)
    return np.asarray(~stays, np.int64)


def _join(found: Array, attrs: Attrs) -> Array:
    """Over the trees, in their order as a kernel does."""
    join = {"sum": np.add, "min": np.minimum, "max": np.maximum}[str(attrs["join"])]
    total = found[:, :, 0]
    for tree in range(1, found.shape[2]):
        total = join(total, found[:, :, tree])
    return np.ascontiguousarray(total)


def _complete_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, nodes, values = _arrays(args)
    groups, trees, leaves = nodes.shape[:3]
    group, tree = np.arange(groups)[:, None], np.arange(trees)
    features = _from_bits(nodes, 1)
    place = np.ones((len(x), groups, trees), np.int64)
    for _ in range(leaves.bit_length() - 1):
        right = _right(x, features[group, tree, place], nodes[group, tree, place, 0])
        place = place * 2 + right
    return _join(values[group, tree, place - leaves], attrs)


def _linked_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, nodes, roots, values = _arrays(args)
    features, left, rows = (_from_bits(nodes, k) for k in (1, 2, 3))
    last = len(nodes) - 1
    place = np.broadcast_to(np.clip(roots, 0, last), (len(x), *roots.shape)).astype(np.int64)
    for _ in range(int_attr(attrs, "depth")):
        right = _right(x, features[place], nodes[place, 0])
        place = np.clip(left[place] + right, 0, last)
    return _join(values[np.clip(rows[place], 0, len(values) - 1)], attrs)


# Samples.


def _complete_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    found: list[Sample] = []
    for rows, columns, groups, trees, depth, outputs, of, join in (
        (5, 4, 1, 3, 3, 1, "float32", "sum"),
        (3, 2, 2, 9, 1, 3, "float32", "sum"),
        (1, 7, 1, 17, 4, 5, "float64", "sum"),
        (70, 3, 1, 8, 2, 1, "float32", "min"),
        (4, 3, 3, 2, 2, 9, "float32", "max"),
        (0, 3, 1, 2, 2, 1, "float32", "sum"),
    ):
        x = s.array((rows, columns), of)
        x[rows // 2 :, 0] = np.nan
        size = (groups, trees, 1 << depth)
        features = s.array(size, "int32", -1, columns)  # out of range, too
        nodes = complete_records(features, s.array(size, of))
        values = s.array((*size, outputs))
        found.append(sample(_COMPLETE, (x, nodes, values), join=join))
        inside = complete_records(np.clip(features, 0, columns - 1), s.array(size, of))
        found.append(sample(_COMPLETE, (x, inside, values), join=join, checked=True))
    return found


def _linked_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    found: list[Sample] = []
    for rows, columns, groups, trees, depth, outputs, of, join in (
        (5, 4, 1, 3, 3, 1, "float32", "sum"),
        (66, 2, 2, 9, 1, 3, "float64", "sum"),
        (1, 3, 1, 5, 7, 2, "float32", "max"),
        (0, 3, 1, 2, 2, 1, "float32", "min"),
    ):
        count = 4 * trees
        x = s.array((rows, columns), of)
        x[: rows // 2, 0] = np.nan
        links = [s.array((count,), "int32", -1, high) for high in (columns, count, 6)]
        nodes = linked_records(links[0], s.array((count,), of), links[1], links[2])
        roots = s.array((groups, trees), "int32", 0, count - 1)
        args = (x, nodes, roots, s.array((6, outputs)))
        found.append(sample(_LINKED, args, depth=depth, join=join))
        safe = [np.clip(a, 0, m) for a, m in zip(links, (columns - 1, count - 2, 5), strict=True)]
        nodes = linked_records(safe[0], s.array((count,), of), safe[1], safe[2])
        found.append(sample(_LINKED, (x, nodes, *args[2:]), depth=depth, join=join, checked=True))
    return found


OPS: tuple[OpDef, ...] = (
    OpDef(
        "tree_ensemble",
        _COMPLETE,
        _complete_infer,
        _complete_reference,
        """The leaves' values of complete trees, joined; x is ``[rows, columns]`` of floats.

        `nodes` is ``[groups, trees, 2 ** depth, 2]``, which `complete_records` makes: from node 1,
        a row goes from node i to 2 i if its column is at most the threshold, else (as NaN) to
        2 i + 1; `values` is ``[groups, trees, 2 ** depth, outputs]``, for each leaf from the left.
        The result, ``[rows, groups, outputs]``, is the sum (in the order of the trees), the least
        or the greatest of each group's trees. Indices out of range are clamped, unless the caller
        says that they were `checked`. (ONNX TreeEnsemble; Hummingbird's PerfectTreeTraversal.)
        """,
        compute=_complete_compute,
        samples=_complete_samples,
        precision="never",
    ),
    OpDef(
        "linked_tree_ensemble",
        _LINKED,
        _linked_infer,
        _linked_reference,
        """The leaves' values of trees of any form, joined; as `tree_ensemble`, but for the nodes.

        `nodes` is ``[nodes, 4]``, which `linked_records` makes: each tells its column, threshold,
        left child, which its right one follows, and row of `values`, ``[rows, outputs]``. `roots`
        is ``[groups, trees]``. Each row takes `depth` steps in each tree.
        """,
        compute=_linked_compute,
        samples=_linked_samples,
        precision="never",
    ),
)
