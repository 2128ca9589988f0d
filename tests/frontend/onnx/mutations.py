"""Small models, and random damage to them: what a broken exporter, a bad disk or malice makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import onnx
from onnx import parser

from unity.frontend.onnx.reading.graphs import subgraphs

M = TypeVar("M")
GRAPHS: dict[str, str] = {
    "mlp": """
        g (float[n, 4] x) => (float[n, 2] y) <float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12},
                                              float[3, 2] v = {1,2,3,4,5,6}> {
            a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) y = Softmax<axis=-1>(c)
        }""",
    "convolution": """
        g (float[1, 1, 5, 5] x) => (float[m, k] y) <float[1, 1, 3, 3] w = {1,2,3,4,5,6,7,8,9}> {
            a = Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]>(x, w)
            b = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(a)
            c = Clip(b) y = Flatten<axis=1>(c)
        }""",
    "shapes": """
        g (float[n, 2, 6] x, int64[k] i) => (float[p, q] y, int64[r] s) <int64[1] one = {1},
            int64[1] minus = {-1}, int64 zero = {0}, float[1] half = {0.5}> {
            s = Shape(x) f = Gather<axis=0>(s, one) t = Concat<axis=0>(minus, f)
            a = Reshape(x, t) b = Transpose<perm=[1, 0]>(a) c = Slice(b, one, f, minus)
            d = Gather<axis=1>(b, i) e = Unsqueeze(d, one) h = Squeeze(e, one)
            u = Cast<to=1>(f) v = Mul(h, half) y = Add(v, u)
        }""",
    "control": """
        g (float[3] x, bool c) => (float[3] y, float[m] z) <int64 trip = {3}, bool go = {1}> {
            y = If (c) <
                then_branch = t () => (float[3] p) { p = Add(x, x) },
                else_branch = e () => (float[3] q) { q = Neg(x) }
            >
            last, z = Loop (trip, go, x) <
                body = b (int64 at, bool on, float[3] state) => (bool more, float[3] next,
                    float out) { more = Identity(on) next = Exp(state)
                                 out = ReduceSum<keepdims=0>(next) }
            >
        }""",
    "recurrent": """
        g (float[4, 2, 3] x) => (float[4, 1, 2, 2] y, float[1, 2, 2] h)
            <float[1, 6, 3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9},
             float[1, 6, 2] r = {1,2,3,4,5,6,7,8,9,1,2,3}> {
            y, h = GRU<hidden_size=2>(x, w, r)
            q, s = TopK<axis=-1>(h, k) k = Constant<value = int64[1] {1}>()
            d = DequantizeLinear(z, scale, zero) z = QuantizeLinear(x, scale, zero)
            scale = Constant<value = float {0.5}>() zero = Constant<value = uint8 {3}>()
            n = LayerNormalization<axis=-1>(d, gain) gain = Constant<value = float[3] {1,2,3}>()
        }""",
}
"""Five graphs, in the text form of ONNX; between them most that an importer does."""
INTS = (-(1 << 63), -(1 << 31), -7, -1, 0, 1, 2, 3, 99, 1 << 31, (1 << 63) - 1)
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e30)
TEXTS = ("", "x", "y", "a", "\0", "no such", "Relu", "Loop", "ai.onnx", "🙂", "then_branch")


def models(opset: int = 18) -> dict[str, onnx.ModelProto]:
    """The five models."""
    opening = f'<ir_version: 9, opset_import: ["" : {opset}]>\n'
    return {name: parser.parse_model(opening + graph) for name, graph in GRAPHS.items()}


def damaged(model: onnx.ModelProto, rng: Random, times: int = 1) -> onnx.ModelProto:
    """A copy with some random damage."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(times):
        rng.choice(DAMAGES)(copy, rng)
    return copy


def _graphs(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    found = [model.graph]
    for graph in found:
        found.extend(inner for node in graph.node for inner in subgraphs(node))
    return found


def _one(rng: Random, found: Sequence[M]) -> M | None:
    return rng.choice(found) if found else None


def _node(model: onnx.ModelProto, rng: Random) -> onnx.NodeProto | None:
    return _one(rng, [n for g in _graphs(model) for n in g.node])


def drop_input(model: onnx.ModelProto, rng: Random) -> None:
    """A node reads less."""
    node = _node(model, rng)
    if node is not None and node.input:
        del node.input[rng.randrange(len(node.input))]


def rename(model: onnx.ModelProto, rng: Random) -> None:
    """A node reads or makes something else: what nothing makes, what comes later, its own."""
    node = _node(model, rng)
    if node is None:
        return
    names = [*TEXTS, *(o for g in _graphs(model) for n in g.node for o in n.output)]
    values = rng.choice([node.input, node.output])
    if values:
        values[rng.randrange(len(values))] = rng.choice(names)


def repeat(model: onnx.ModelProto, rng: Random) -> None:
    """Something stands there twice: a node, an input, an output, an attribute."""
    graph = rng.choice(_graphs(model))
    kind: Any = rng.choice([graph.node, graph.input, graph.output, graph.initializer])
    if kind:
        kind.add().CopyFrom(rng.choice(kind))


def drop(model: onnx.ModelProto, rng: Random) -> None:
    """Something is missing."""
    graph = rng.choice(_graphs(model))
    node = _one(rng, graph.node)
    owned: list[Any] = [graph.node, graph.input, graph.output, graph.initializer]
    if node is not None:
        owned += [node.output, node.attribute]
    kind: Any = rng.choice(owned)
    if kind:
        del kind[rng.randrange(len(kind))]


def change_operator(model: onnx.ModelProto, rng: Random) -> None:
    """A node is of another operator."""
    node = _node(model, rng)
    if node is not None:
        node.op_type = rng.choice([*OPERATORS, *TEXTS])


def change_field(model: onnx.ModelProto, rng: Random) -> None:
    """Any number, text or choice anywhere is another."""
    message: Any = model.graph
    while True:
        fields: list[tuple[Any, Any]] = list(message.ListFields())
        if not fields:
            return
        field: Any
        value: Any
        field, value = rng.choice(fields)
        inner = field.type == field.TYPE_MESSAGE
        repeated = type(value).__name__.startswith("Repeated")
        if inner:
            message = rng.choice(list(value)) if repeated else value
            continue
        other = _other(field, rng)
        if not repeated:
            setattr(message, field.name, other)
        elif value:
            value[rng.randrange(len(value))] = other
        return


def _other(field: Any, rng: Random) -> object:
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice(FLOATS)
    if field.type == field.TYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    if field.type == field.TYPE_STRING:
        return rng.choice(TEXTS)
    if field.type == field.TYPE_BYTES:
        return rng.randbytes(rng.randrange(9))
    wide = field.type in (field.TYPE_INT64, field.TYPE_SINT64)
    signed = field.type not in (field.TYPE_UINT64, field.TYPE_UINT32)
    fits = [v for v in INTS if (wide or abs(v) < 1 << 31) and (signed or v >= 0)]
    return rng.choice(fits)


OPERATORS = tuple(sorted({s.name for s in onnx.defs.get_all_schemas()}))
DAMAGES: tuple[Callable[[onnx.ModelProto, Random], None], ...] = (
    *(drop_input, rename, rename, repeat, drop, change_operator, change_field, change_field),
)
