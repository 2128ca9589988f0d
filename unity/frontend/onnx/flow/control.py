"""Control flow: If. A branch decided during the import is put in place; else both are kept.

Exporters of torch write ``x.squeeze(axis)`` as an If: if the axis has the extent 1, a Squeeze, else
nothing. How many axes there are is not known then. Where a model can't be imported for that, it is
imported for an extent of 1, which is checked when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from unity.errors import UnityError
from unity.frontend.run_time.slicing import scalar
from unity.frontend.run_time.vectors import matched
from unity.ir.dims import equal, symbols_of
from unity.ir.dtype import INT64
from unity.ir.graph import Body, Expr, If, Tuple

from ..node import Converter, Node, Outcome
from ..sequences.held import Form, Held, Maybe, form_of, listed, tensor_of

if TYPE_CHECKING:
    from ..importer import GraphImporter


def _if(node: Node) -> Sequence[Outcome]:
    then, orelse = node.graph_of("then_branch"), node.graph_of("else_branch")
    for branch in (then, orelse):
        if len(branch.output) != len(node.proto.output):
            raise UnityError(
                f"has {len(node.proto.output)} outputs, a branch of it {len(branch.output)}"
            )
    node.require_bool(0)
    known = node.constant(0)
    if known is not None:
        taken = then if bool(known.reshape(-1)[0]) else orelse
        return node.graph.inline(taken)
    condition = node.tensor(0)
    if node.graph.specializes and _squeezes(then, orelse):
        _require(
            node,
            condition,
            "takes_an_axis_away",
            "the branch that takes an axis away must be taken",
        )
        return node.graph.inline(then)
    condition = scalar(node, condition)
    inner = [node.graph.inner() for _ in range(2)]
    found = [at.inline(graph) for at, graph in zip(inner, (then, orelse), strict=True)]
    within = [Node(node.proto, at, node.version) for at in inner]
    forms = [_form(within, pair) for pair in zip(*found, strict=True)]
    first, other = (
        _body(at, scope, values, forms)
        for at, scope, values in zip(within, inner, found, strict=True)
    )
    value = node.graph.builder.emit(If(condition, first, other), node.label, node.span)
    count = len(node.proto.output)
    parts: list[Expr] = [value] if count == 1 else [node.field(value, i) for i in range(count)]
    return [
        _sized(node, part, within, pair) if form is None else form.unpacked(node, part)
        for part, form, pair in zip(parts, forms, zip(*found, strict=True), strict=True)
    ]


def _sized(node: Node, value: Expr, within: Sequence[Node], pair: Sequence[Outcome]) -> Expr:
    """What a branch gave, with symbols for the extents that differ by the branch."""
    given = [at.type_of(at.plain(v)).shape for at, v in zip(within, pair, strict=True)]
    shapes = [dims for dims in given if isinstance(dims, tuple)]
    if not isinstance(node.type_of(value).shape, int) or len(shapes) < len(given):
        return value
    shape = tuple(
        a if equal(a, b) and all(node.builder.has_symbol(s.name) for s in symbols_of(a))
        else node.builder.fresh(f"{node.label}_size")
        for a, b in zip(*shapes, strict=True)
    )  # fmt: skip
    return node.assert_shape(value, shape)


def _require(node: Node, condition: Expr, what: str, rule: str) -> None:
    """Check at run time that a condition holds: by the sizes that it compares, if it does."""
    if condition in node.graph.equated:
        node.require(*node.graph.equated[condition], what, rule)
    else:
        matched(node, node.op("reshape", node.cast(condition, INT64), (1,)), (1,), what, rule)


def _squeezes(then: onnx.GraphProto, orelse: onnx.GraphProto) -> bool:
    """Whether one branch takes axes away from what the other gives as it is."""
    ours = [n for n in then.node if n.op_type != "Constant"]
    theirs = [n for n in orelse.node if n.op_type != "Constant"]
    return (
        [n.op_type for n in ours] == ["Squeeze"]
        and [n.op_type for n in theirs] == ["Identity"]
        and ours[0].input[0] == theirs[0].input[0]
    )


def _form(nodes: Sequence[Node], values: tuple[Outcome, ...]) -> Form | None:
    """How what either branch gives is passed on; None for a tensor."""
    if not any(isinstance(v, Held) for v in values):
        return None
    held = [_as_held(node, v, values) for node, v in zip(nodes, values, strict=True)]
    return form_of(held[0]).joined(form_of(held[1]))


def _as_held(node: Node, value: Outcome, beside: Sequence[Outcome]) -> Held:
    """A tensor that the other branch may leave out as one that may be absent."""
    if isinstance(value, Held):
        return value
    if not any(isinstance(v, Maybe) and v.is_tensor for v in beside):
        raise UnityError("gives a tensor in one branch, a sequence in the other")
    return Maybe(listed(node, (value,)).kind, is_tensor=True, value=value)


def _body(
    node: Node, scope: GraphImporter, values: Sequence[Outcome], forms: Sequence[Form | None]
) -> Body:
    passed: list[Expr] = []
    for value, form in zip(values, forms, strict=True):
        if form is not None:
            passed.append(form.packed(node, _as_held(node, value, (Maybe(form.kind, True),))))
        else:
            assert not isinstance(value, Held)
            passed.append(tensor_of(node, value))
    return scope.builder.body(passed[0] if len(passed) == 1 else Tuple(tuple(passed)))


CONVERTERS: dict[str, Converter] = {"If": _if}
