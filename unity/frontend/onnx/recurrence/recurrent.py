"""RNN, GRU and LSTM: for each direction one matmul over all steps, then a scan of the cell.

What the steps share is computed before the scan: the inputs times their weights, and all biases
that are added to them. A reverse direction scans what is flipped; a sequence that is shorter than
the longest keeps its state and gives zeros where it has no step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.errors import UnityError
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.onnx.quantized.dynamic import IntegerWeights
from unity.frontend.sizes import is_symbolic
from unity.ir.dims import Dim, equal
from unity.ir.dtype import INT32, INT64
from unity.ir.graph import Expr, Scan, Tuple
from unity.ir.types import Shape, TensorType

from .cells import Cell, Function, Step, activations, gru, lstm, rnn

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, slots=True)
class _Kind:
    """An operator: its step, its numbers of gates and states, and its activations.

    Where `integers`, weights are 8-bit integers with their outputs last, and scales and zero points
    follow the other inputs.
    """

    step: Step
    gates: int
    states: int
    functions: tuple[str, ...]
    integers: bool = False


@dataclass(frozen=True, slots=True)
class _Sequences:
    """The inputs of all directions: ``(time, batch, input)``, and which steps there are of each."""

    x: Expr
    shape: Shape
    mask: Expr | None


def _converter(kind: _Kind) -> Converter:
    def convert(node: Node) -> Value | list[Value]:
        name = node.text_of("direction", "forward")
        if name not in _DIRECTIONS:
            raise UnityError(f"the direction {name!r} is none of {', '.join(_DIRECTIONS)}")
        node.ignore("output_sequence")  # of opset 1; whether an output is used says it
        directions = _DIRECTIONS[name]
        by_batch = node.int_of("layout", 0) == 1
        sequences = _sequences(node, by_batch, kind.integers)
        names = _functions(node, kind, len(directions))
        done = [
            _direction(node, kind, sequences, d, names[d], reverse, by_batch)
            for d, reverse in enumerate(directions)
        ]
        # Y (time, directions, batch, hidden), then the last states (directions, batch, hidden).
        columns = zip(*done, strict=True)
        joined = [_stacked(node, c, 1 if k == 0 else 0) for k, c in enumerate(columns)]
        if by_batch:
            orders = [(2, 0, 1, 3), *[(1, 0, 2)] * kind.states]
            joined = [
                node.op("permute_dims", v, axes=o) for v, o in zip(joined, orders, strict=True)
            ]
        return list(joined)

    return convert


def _functions(node: Node, kind: _Kind, directions: int) -> list[tuple[Function, ...]]:
    names = node.texts_of("activations") or kind.functions * directions
    each = len(kind.functions)
    if len(names) != each * directions:
        raise UnityError(f"takes {each * directions} activations, got {len(names)}")
    alphas, betas = node.floats_of("activation_alpha"), node.floats_of("activation_beta")
    found = activations(names, alphas or (), betas or ())
    return [found[d * each : (d + 1) * each] for d in range(directions)]


def _sequences(node: Node, by_batch: bool, integers: bool) -> _Sequences:
    x = node.tensor(0)
    if len(node.shape_of(x)) != 3:
        raise UnityError(f"takes an input of rank 3, got shape {node.shape_of(x)}")
    *leading, width = node.shape_of(x)
    weights = node.shape_of(node.tensor(1))
    wide = 1 if integers else 2
    if is_symbolic(width) and len(weights) == 3 and not equal(width, weights[wide]):
        x = node.assert_shape(x, (*leading, weights[wide]))  # the weights say what it must be
    if by_batch:
        x = node.op("permute_dims", x, axes=(1, 0, 2))
    shape = node.shape_of(x)
    mask = None
    if node.has(4):
        lengths = node.agreed(node.cast(node.tensor(4), INT64), (shape[1],))
        lengths = node.op("reshape", lengths, (1, shape[1], 1))
        steps = node.op("arange", 0, shape[0], 1, dtype=INT64)
        mask = node.op("less", node.op("reshape", steps, (shape[0], 1, 1)), lengths)
    return _Sequences(x, shape, mask)


def _direction(
    node: Node,
    kind: _Kind,
    sequences: _Sequences,
    d: int,
    functions: tuple[Function, ...],
    reverse: bool,
    by_batch: bool,
) -> list[Expr]:
    """The outputs ``(time, batch, hidden)`` and the last states ``(batch, hidden)``."""
    steps, batch, width = sequences.shape
    weight, recurrent = _part(node, 1, d), _part(node, 2, d)
    own = _integers(node, 2, 10, d) if kind.integers else None
    hidden = node.shape_of(recurrent)[0 if kind.integers else -1]
    _check(node, kind, hidden, width)
    early, late = _biases(node, kind, d, hidden)
    rows = node.op("reshape", sequences.x, (steps * batch, width))
    if kind.integers:
        projected = _integers(node, 1, 8, d).product(node, rows)
    else:
        projected = node.op("matmul", rows, node.op("permute_dims", weight, axes=(1, 0)))
    if early is not None:
        projected = node.op("add", projected, early)
    inputs = [node.op("reshape", projected, (steps, batch, kind.gates * hidden))]
    if sequences.mask is not None:
        inputs.append(sequences.mask)
    if reverse:
        inputs = [node.op("flip", x, axis=0) for x in inputs]
    clip = node.float_of("clip", 0.0)
    cell = Cell(
        hidden,
        node.op("permute_dims", recurrent, axes=(1, 0)),
        functions,
        clip if clip > 0 else None,
        _peepholes(node, d, hidden),
        late,
        bool(node.int_of("linear_before_reset", 0)),
        bool(node.int_of("input_forget", 0)),
        own,
    )
    init = [
        _initial(node, 5 + k, d, (batch, hidden), by_batch, sequences.x) for k in range(kind.states)
    ]
    y, *last = _scan(node, kind, cell, init, inputs)
    return [node.op("flip", y, axis=0) if reverse else y, *last]


def _integers(node: Node, index: int, scale: int, d: int) -> IntegerWeights:
    """One direction's integer weights, with their scale and zero point."""
    given = node.cast(_part(node, index, d), INT32)
    by, zero = (_part(node, k, d) for k in (scale, scale + 1))
    return IntegerWeights(node.op("subtract", given, node.cast(zero, INT32)), by)


def _scan(
    node: Node, kind: _Kind, cell: Cell, init: Sequence[Expr], inputs: Sequence[Expr]
) -> list[Expr]:
    """The stacked outputs, then the last states."""
    graph = node.graph.inner()
    inner = Node(node.proto, graph, node.version)
    names = ("h", "c")
    state = [graph.builder.new_var(n, node.type_of(v)) for n, v in zip(names, init, strict=False)]
    elements = [
        graph.builder.new_var(n, TensorType(node.shape_of(v)[1:], node.dtype_of(v)))
        for n, v in zip(("x", "within"), inputs, strict=False)
    ]
    after = kind.step(cell, inner, elements[0], state)
    output = after[0]
    if len(elements) > 1:
        output = inner.op("where", elements[1], output, inner.number(0, output))
        after = tuple(
            inner.op("where", elements[1], new, old) for new, old in zip(after, state, strict=True)
        )
    body = graph.builder.body(Tuple((*after, output)))
    scan = Scan(tuple(state), tuple(init), tuple(elements), tuple(inputs), body)
    value = node.graph.builder.emit(scan, node.label, node.span)
    count = len(state)
    return [node.field(value, count), *(node.field(value, k) for k in range(count))]


def _part(node: Node, index: int, d: int) -> Expr:
    """One direction's part of an input, whose leading axis are the directions."""
    whole = node.tensor(index)
    shape = node.shape_of(whole)
    if shape[0] == 1:
        return node.op("reshape", whole, shape[1:])
    part = node.op("strided_slice", whole, axes=(0,), begin=(d,), end=(d + 1,), strides=None)
    return node.op("reshape", part, shape[1:])


def _columns(node: Node, vector: Expr, begin: Dim, end: Dim) -> Expr:
    return node.op("strided_slice", vector, axes=(0,), begin=(begin,), end=(end,), strides=None)


def _biases(node: Node, kind: _Kind, d: int, hidden: Dim) -> tuple[Expr | None, Expr | None]:
    """What is added to the projected inputs, and what GRU adds before it resets."""
    if not node.has(3):
        return None, None
    both, width = _part(node, 3, d), kind.gates * hidden
    first, second = _columns(node, both, 0, width), _columns(node, both, width, 2 * width)
    if not node.int_of("linear_before_reset", 0):
        return node.op("add", first, second), None
    early, late = _columns(node, second, 0, 2 * hidden), _columns(node, second, 2 * hidden, width)
    nothing = node.op("zeros", (hidden,), dtype=node.dtype_of(both))
    padded = node.op("concat", (early, nothing), axis=0)
    return node.op("add", first, padded), late


def _peepholes(node: Node, d: int, hidden: Dim) -> tuple[Expr, ...]:
    if not node.has(7):
        return ()
    whole = _part(node, 7, d)
    return tuple(_columns(node, whole, k * hidden, (k + 1) * hidden) for k in range(3))


def _initial(node: Node, index: int, d: int, shape: Shape, by_batch: bool, like: Expr) -> Expr:
    """The initial state of a direction; zeros if it is not given."""
    if not node.has(index):
        return node.op("zeros", shape, dtype=node.dtype_of(like))
    if not by_batch:
        given = _part(node, index, d)
    else:
        whole = node.tensor(index)
        part = node.op("strided_slice", whole, axes=(1,), begin=(d,), end=(d + 1,), strides=None)
        given = node.op("reshape", part, (node.shape_of(whole)[0], node.shape_of(whole)[2]))
    return node.agreed(given, shape)


def _check(node: Node, kind: _Kind, hidden: Dim, width: Dim) -> None:
    """That the weights fit each other, and what is said of them."""
    rows = kind.gates * hidden
    shapes = ((1, (rows, width)), (2, (rows, hidden)), (3, (2 * rows,)))
    for index, wanted in shapes:
        if kind.integers and index < 3:
            wanted = wanted[::-1]
        if not node.has(index):
            continue
        found = node.shape_of(node.tensor(index))[1:]
        if len(found) != len(wanted) or not all(map(equal, found, wanted)):
            raise UnityError(f"its input {index} has the shape {found} a direction, not {wanted}")
    declared = node.int_of("hidden_size", 0)
    if declared and not equal(hidden, declared):
        raise UnityError(f"hidden_size is {declared}, but the weights have {hidden}")


def _stacked(node: Node, parts: Sequence[Expr], axis: int) -> Expr:
    """The directions' values as one, along a new axis."""
    shape = node.shape_of(parts[0])
    wide = [node.op("reshape", p, (*shape[:axis], 1, *shape[axis:])) for p in parts]
    return wide[0] if len(wide) == 1 else node.op("concat", tuple(wide), axis=axis)


QUANTIZED: dict[str, Converter] = {
    "DynamicQuantizeLSTM": _converter(_Kind(lstm, 4, 2, ("Sigmoid", "Tanh", "Tanh"), True)),
}
"""Those of the domain ``com.microsoft``."""
CONVERTERS: dict[str, Converter] = {
    "RNN": _converter(_Kind(rnn, 1, 1, ("Tanh",))),
    "GRU": _converter(_Kind(gru, 3, 1, ("Sigmoid", "Tanh"))),
    "LSTM": _converter(_Kind(lstm, 4, 2, ("Sigmoid", "Tanh", "Tanh"))),
}
