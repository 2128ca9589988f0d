"""A graph function of operators as an ONNX model, or why one of its calls can't be written so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol, dim_text
from unity.ir.dtype import FLOAT32
from unity.ir.graph import (
    BindingBlock,
    Body,
    Call,
    Constant,
    Expr,
    Function,
    Op,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.transform.graph.resolve import OpSite

from .elementwise import RULES as ELEMENTWISE
from .indexing import RULES as INDEXING
from .layers import RULES as LAYERS
from .rule import NodeRule
from .shaping import RULES as SHAPING
from .writer import Arg, OpNode, Writer, onnx_dtype

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

OPSET = 20
RULES: dict[str, NodeRule] = {**ELEMENTWISE, **SHAPING, **LAYERS, **INDEXING}


def export_model(module: IRModule, name: str = "main") -> ModelProto:
    """The ONNX model of a function; its inputs and outputs are called ``i0``, ``o0`` and so on.

    Symbols become named dims, shapes that depend on them are computed in the model.

    Raises:
        UnityError: The function holds something that can't be written in ONNX.
    """
    from onnx import helper

    function = module[name]
    assert isinstance(function, Function)
    inputs = [(f"i{i}", _tensor(p.type)) for i, p in enumerate(function.params)]
    writer = Writer(_sources(inputs))
    names: dict[Var, Arg] = {p: f"i{i}" for i, p in enumerate(function.params)}
    for block in function.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, VarBinding):
                raise UnityError("a match_cast can't be written in ONNX", binding.span)
            names[binding.var] = _value(binding.value, binding.var.type, names, writer)
    result = _arg(function.body.result, names, writer)
    given = result if isinstance(result, tuple) else (result,)
    types = function.result.fields if isinstance(function.result, TupleType) else (function.result,)
    outputs: list[ValueInfoProto] = []
    for i, (value, t) in enumerate(zip(given, types, strict=True)):
        assert isinstance(value, str)
        writer.nodes.append(helper.make_node("Identity", [value], [f"o{i}"]))
        outputs.append(_info(f"o{i}", _tensor(t)))
    graph = helper.make_graph(
        writer.nodes,
        "unity",
        [_info(n, t) for n, t in inputs],
        outputs,
        writer.initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    if model.ByteSize() > 2**31 - 1:
        raise UnityError("an ONNX model in memory holds at most 2 GB")
    return model


def why_not(site: OpSite) -> str | None:
    """Why a call can't be written in ONNX; None if it can.

    ONNX's own checker is asked whether the operator is defined on these types and, as far as it
    can tell, gives the shape that we say.
    """
    if not isinstance(site.call.callee, Op):
        return "it calls a function"
    return _why_not(site.call.callee.name, site.args, site.call.attrs, site.result)


@lru_cache(maxsize=4096)
def _why_not(name: str, args: tuple[Type, ...], attrs: Attrs, result: Type) -> str | None:
    if name not in RULES:
        return f"{name} has no form in ONNX here"
    builder: list[Expr] = []
    params: list[Var] = []
    for i, t in enumerate(args):
        match t:
            case ShapeType(dims) if isinstance(dims, tuple):
                builder.append(ShapeValue(dims))
            case TupleType(fields):
                made = [Var(f"x{i}_{j}", f) for j, f in enumerate(fields)]
                params += made
                builder.append(Tuple(tuple(made)))
            case _:
                params.append(Var(f"x{i}", t))
                builder.append(params[-1])
    symbols = sorted({s for t in (*args, result) for s in type_symbols(t)}, key=lambda s: s.name)
    params += [Var(s.name, TensorType((s,), FLOAT32)) for s in symbols]  # the region tells them
    call = Call(Op(name), tuple(builder), attrs)
    var = Var("y", result)
    body = Body((BindingBlock((VarBinding(var, call),), dataflow=True),), var)
    try:
        model = export_model(IRModule({"main": Function(tuple(params), body, result)}))
        _check(model)
    except UnityError as error:
        return error.message if error.message.startswith(name) else f"{name}: {error.message}"
    return None


_LONGEST = 64
"""Elements of a vector whose values ONNX may follow: it keeps a record for each."""


def _check(model: ModelProto) -> None:
    """Refuse a model that ONNX does not define.

    What vectors hold is followed (it may be a shape), unless a long one is among them.

    Raises:
        UnityError: An operator is not defined on these types, or gives another shape.
    """
    from onnx import shape_inference

    shapes = [v.type.tensor_type.shape for v in (*model.graph.input, *model.graph.output)]
    short = all(s.dim[0].dim_value <= _LONGEST for s in shapes if len(s.dim) == 1)
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=short)
    except Exception as error:
        reason = str(error).strip().splitlines()[-1]
        raise UnityError(f"ONNX does not define it so: {reason[:160]}") from None


def _value(value: Expr, t: Type, names: dict[Var, Arg], writer: Writer) -> Arg:
    match value:
        case Call(Op(name), args, attrs):
            if name not in RULES:
                raise UnityError(f"{name} has no form in ONNX here", value.span)
            operands = [_arg(a, names, writer) for a in args]
            types = [found for a in args if (found := atom_type(a)) is not None]
            try:
                made = RULES[name](OpNode(writer, operands, types, attrs, t))
            except UnityError as error:
                raise UnityError(f"{name}: {error.message}", value.span) from None
            return made
        case _:
            return _arg(value, names, writer)


def _arg(e: Expr, names: dict[Var, Arg], writer: Writer) -> Arg:
    match e:
        case Var():
            return names[e]
        case Constant(data):
            return writer.constant(data)
        case ShapeValue(dims):
            return dims
        case Tuple(fields):
            parts = [_arg(f, names, writer) for f in fields]
            return tuple(p for p in parts if isinstance(p, str))
        case TupleGet(value, index):
            whole = _arg(value, names, writer)
            assert isinstance(whole, tuple)
            found = whole[index]
            assert isinstance(found, str)
            return found
        case _:
            raise UnityError(f"{type(e).__name__} can't be written in ONNX")


def _tensor(t: Type) -> TensorType:
    if not isinstance(t, TensorType) or not isinstance(t.shape, tuple) or t.dtype is None:
        raise UnityError(f"{t} is no tensor of known dims")
    onnx_dtype(t.dtype)
    return t


def _sources(inputs: Sequence[tuple[str, TensorType]]) -> dict[Symbol, tuple[str, int]]:
    """Which input's axis is each symbol."""
    found: dict[Symbol, tuple[str, int]] = {}
    for name, t in inputs:
        assert isinstance(t.shape, tuple)
        for axis, size in enumerate(t.shape):
            if isinstance(size, Symbol):
                found.setdefault(size, (name, axis))
    return found


def _info(name: str, t: TensorType) -> ValueInfoProto:
    from onnx import helper

    assert isinstance(t.shape, tuple)
    assert t.dtype is not None
    shape = [_dim(d) for d in t.shape]
    return helper.make_tensor_value_info(name, onnx_dtype(t.dtype), shape)


def _dim(d: Dim) -> int | str:
    return d if isinstance(d, int) else dim_text(d).replace(" ", "")
