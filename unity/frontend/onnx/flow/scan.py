"""Scan: a graph run for each slice of its inputs, carrying states, as the IR's own scan."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from unity.errors import UnityError
from unity.ir.dims import equal
from unity.ir.graph import Expr, Scan, Tuple
from unity.ir.types import TensorType

from ..node import Converter, Node, Value
from ..reading.tensors import check_declared


def _scan(node: Node) -> list[Value]:
    body = node.graph_of("body")
    if node.version < 9:
        return _of_batches(node, body)
    return _of_one(node, body, [node.tensor(k) for k in range(len(node.proto.input))])


def _of_batches(node: Node, body: onnx.GraphProto) -> list[Value]:
    """Scans of each batch by itself, as they were before operator set 9."""
    if node.has(0):
        raise node.gap("sequences of other lengths than all steps")
    given = [node.tensor(k) for k in range(1, len(node.proto.input))]
    batch = node.shape_of(given[0])[0]
    if not isinstance(batch, int):
        raise node.symbolic_gap("an unknown number of batches", batch)
    node.attributes["scan_input_directions"] = _renamed(node, "directions")
    done: list[list[Value]] = []
    for k in range(batch):
        parts = [node.op("strided_slice", x, axes=(0,), begin=(k,), end=(k + 1,)) for x in given]
        done.append(_of_one(node, body, [node.op("squeeze", x, axis=(0,)) for x in parts]))
    joined: list[Value] = []
    for each in zip(*done, strict=True):
        wide = [node.op("expand_dims", node.plain(x), axis=0) for x in each]
        joined.append(wide[0] if batch == 1 else node.op("concat", Tuple(tuple(wide)), axis=0))
    return joined


def _renamed(node: Node, name: str) -> onnx.AttributeProto:
    """An attribute of ints; of no ints if it is not given."""
    return node.attribute(name) or onnx.helper.make_attribute(
        name, [], attr_type=onnx.AttributeProto.INTS
    )


def _of_one(node: Node, body: onnx.GraphProto, given: Sequence[Expr]) -> list[Value]:
    count = node.int_of("num_scan_inputs", 0)
    graph_in, graph_out = list(body.input), list(body.output)
    states = len(given) - count
    if count < 1 or states < 0 or len(graph_in) != len(given):
        raise UnityError(f"{len(given)} inputs, of which {count} are scanned, do not fit the body")
    for info, x in zip(graph_in, given, strict=True):
        check_declared(info, node.dtype_of(x), f"the body's input {info.name!r}")
    stacked = len(graph_out) - states
    init = given[:states]
    inputs = [
        _leading(node, x, axis, reverse)
        for x, axis, reverse in zip(
            given[states:],
            _each(node, "scan_input_axes", count),
            _each(node, "scan_input_directions", count),
            strict=True,
        )
    ]
    inner = node.graph.inner()
    state = [
        inner.builder.new_var(p.name, node.type_of(x)) for p, x in zip(graph_in, init, strict=False)
    ]
    elements = [
        inner.builder.new_var(p.name, TensorType(node.shape_of(x)[1:], node.dtype_of(x)))
        for p, x in zip(graph_in[states:], inputs, strict=True)
    ]
    for p, var in zip(graph_in, (*state, *elements), strict=True):
        inner.values[p.name] = var
    within = Node(node.proto, inner, node.version)
    after = [within.plain(v) for v in inner.inline(body)]
    after[:states] = [
        kept(within, new, within.type_of(old)) for new, old in zip(after, state, strict=False)
    ]
    whole = inner.builder.body(Tuple(tuple(after)))
    scan = Scan(tuple(state), tuple(init), tuple(elements), tuple(inputs), whole)
    value = node.graph.builder.emit(scan, node.label, node.span)
    fields: list[Value] = [node.field(value, k) for k in range(states)]
    axes = _each(node, "scan_output_axes", stacked)
    ways = _each(node, "scan_output_directions", stacked)
    for k, (axis, reverse) in enumerate(zip(axes, ways, strict=True)):
        fields.append(_placed(node, node.field(value, states + k), axis, reverse))
    return fields[: len(node.proto.output)]


def _each(node: Node, name: str, count: int) -> Sequence[int]:
    found = node.ints_of(name) or (0,) * count
    if len(found) != count:
        raise UnityError(f"{name} has {len(found)} numbers, not {count}")
    return found


def _axis(node: Node, x: Expr, axis: int) -> int:
    rank = len(node.shape_of(x))
    if not -rank <= axis < rank:
        raise UnityError(f"an axis {axis} of a tensor of rank {rank}")
    return axis % rank


def _leading(node: Node, x: Expr, axis: int, reverse: int) -> Expr:
    """With an axis first, from its end if reversed."""
    at = _axis(node, x, axis)
    if at:
        order = (at, *(k for k in range(len(node.shape_of(x))) if k != at))
        x = node.op("permute_dims", x, axes=order)
    return node.op("flip", x, axis=0) if reverse else x


def _placed(node: Node, x: Expr, axis: int, reverse: int) -> Expr:
    """With the leading axis elsewhere, from its end if reversed."""
    at = _axis(node, x, axis)
    if reverse:
        x = node.op("flip", x, axis=0)
    if not at:
        return x
    order = [*range(1, len(node.shape_of(x)))]
    order.insert(at, 0)
    return node.op("permute_dims", x, axes=tuple(order))


def kept(node: Node, new: Expr, old: TensorType) -> Expr:
    """A state after a step, of the type that it had before."""
    if node.dtype_of(new) != old.dtype:
        raise UnityError(f"a state of {old.dtype} becomes one of {node.dtype_of(new)}")
    before, after = old.shape, node.shape_of(new)
    assert isinstance(before, tuple)
    same = len(before) == len(after) and all(map(equal, before, after))
    return new if same else node.assert_shape(new, before)


CONVERTERS: dict[str, Converter] = {"Scan": _scan}
