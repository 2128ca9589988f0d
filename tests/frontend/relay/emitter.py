"""Our graph functions as Relay's text: `emitted`, for round trips of whole networks.

Constants are ``meta[relay.Constant][i]`` of a table beside the text. With ``channels_last``,
convolutions, their inputs and what reads channels are written as NHWC, for networks of few kinds
of operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from unity.errors import UnsupportedError
from unity.ir.dtype import INT64, Array, DType
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Call,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Op,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
)
from unity.ir.module import IRModule
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visiting.visit_graph import substitute_vars
from unity.op.infer import infer_type

HEADER = '#[version = "0.0.5"]\n'
SAME = {
    *("abs", "add", "ceil", "clip", "cos", "divide", "equal", "erf", "exp", "floor", "greater"),
    *("greater_equal", "left_shift", "less", "less_equal", "log", "logical_and", "logical_not"),
    *("logical_or", "maximum", "minimum", "multiply", "negative", "nn.relu", "not_equal", "power"),
    *(
        "right_shift",
        "rsqrt",
        "sigmoid",
        "sign",
        "sqrt",
        "subtract",
        "tanh",
        "trunc",
        "where",
        "floor_divide",
        "floor_mod",
    ),
}
"""Operators of one name and meaning, without attributes."""
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any")
_LAST = {2: 1, 3: 2, 1: 3}
"""Axes of NCHW in NHWC."""


@dataclass
class Emitted:
    """A program's text, and the constants that it names."""

    text: str
    constants: list[Array]


def _behind(body: Body, state: Var, loop: While) -> Body:
    """What is computed of a loop's last state, as the branch in which nothing is called."""
    ends: dict[Var, Expr] = {}
    blocks: list[BindingBlock] = []
    for block in body.blocks:
        rest: list[Binding] = []
        for b in block.bindings:
            match b:
                case VarBinding(var, TupleGet(of, index)) if of is state:
                    ends[var] = loop.vars[index]
                case VarBinding(var) if var is state:
                    pass
                case _:
                    rest.append(b)
        blocks.append(replace(block, bindings=tuple(rest)))
    return substitute_vars(Body(tuple(blocks), body.result), ends)


@dataclass
class _Writer:
    module: IRModule
    channels_last: bool
    constants: list[Array] = field(default_factory=list[Array])
    places: dict[int, int] = field(default_factory=dict[int, int])
    bound: dict[str, Expr] = field(default_factory=dict[str, Expr])

    def function(self, name: str, function: Function) -> str:
        first = next((b for k in function.body.blocks for b in k.bindings), None)
        match first:
            case VarBinding(var, While() as loop) if loop.init == function.params:
                return self.loop(name, function, loop, _behind(function.body, var, loop))
            case _:
                pass
        params = ", ".join(f"%{p.name}: {self.type(p.type)}" for p in function.params)
        result = "" if name == "main" else f" -> {self.type(function.result)}"
        return f"def @{name}({params}){result} {{\n{self.body(function.body)}\n}}\n"

    def type(self, kind: Type) -> str:
        match kind:
            case TensorType(tuple() as shape, DType() as element):
                dims: Sequence[object] = shape
                if self.channels_last and len(shape) == 4:
                    dims = [shape[i] for i in (0, 2, 3, 1)]
                written = "".join(f"{d if isinstance(d, int) else '?'}, " for d in dims)
                return f"Tensor[({written.removesuffix(' ')}), {element}]"
            case TupleType(fields):
                return f"({', '.join(map(self.type, fields))})"
            case _:
                raise UnsupportedError(f"no type of Relay: {kind}")

    def body(self, body: Body) -> str:
        lines: list[str] = []
        for block in body.blocks:
            for binding in block.bindings:
                if isinstance(binding, MatchCast):
                    raise UnsupportedError("a check at run time")
                self.bound[binding.var.name] = binding.value
                if isinstance(binding.value, Scan):
                    lines.append(self.scan(binding.var.name, binding.value))
                    continue
                lines.append(f"let %{binding.var.name} = {self.value(binding.value)};")
        return "\n".join([*lines, self.value(body.result)])

    def loop(self, name: str, function: Function, loop: While, behind: Body) -> str:
        """A function that calls itself with the next state as long as the condition holds."""
        params = ", ".join(f"%{v.name}: {self.type(v.type)}" for v in loop.vars)
        asks, goes = (
            self.body(Body(b.blocks, Tuple(()))).removesuffix("()")
            for b in (loop.condition, loop.body)
        )
        following = self.value(loop.body.result)
        again = ", ".join(f"{following}.{i}" for i in range(len(loop.vars)))
        return (
            f"def @{name}({params}) -> {self.type(function.result)} {{\n{asks}"
            f"if ({self.value(loop.condition.result)}) {{\n{goes}@{name}({again})\n"
            f"}} else {{\n{self.body(behind)}\n}}\n}}\n"
        )

    def scan(self, name: str, loop: Scan) -> str:
        """A function that calls itself for the next element; it writes each step's outputs."""
        count = self.shape(loop.inputs[0])[0]
        result = loop.body.result
        assert isinstance(result, Tuple | Var)
        kind = infer_type(result, {})
        assert isinstance(kind, TupleType)
        made = kind.fields[len(loop.state) :]
        stacks = [f"{name}_stack{i}" for i in range(len(made))]
        whole = [TensorType((count, *k.shape), k.dtype) for k in made
                 if isinstance(k, TensorType) and isinstance(k.shape, tuple)]  # fmt: skip
        assert len(whole) == len(made)
        params = [(f"{name}_i", TensorType((), INT64)), *((v.name, v.type) for v in loop.state)]
        declared = ", ".join(
            f"%{n}: {self.type(k)}" for n, k in [*params, *zip(stacks, whole, strict=True)]
        )
        gives = self.type(TupleType((*(v.type for v in loop.state), *whole)))
        states = [f"%{v.name}" for v in loop.state]
        takes = "".join(
            f'let %{v.name} = take({self.value(x)}, %{name}_i, axis=0, mode="fast");\n'
            for v, x in zip(loop.elements, loop.inputs, strict=True)
        )
        following = self.body(Body(loop.body.blocks, Tuple(())))
        lines = following.removesuffix("()")
        after = [f"%{name}_next.{i}" for i in range(len(kind.fields))]
        here = f"equal({self.constant(np.arange(count))}, %{name}_i)"
        written = [
            f"where(reshape({here}, newshape=[-1{', 1' * (len(k.shape) - 1)}]), "
            f"expand_dims({a}, axis=0), %{n})"
            for n, k, a in zip(stacks, whole, after[len(states) :], strict=True)
            if isinstance(k.shape, tuple)
        ]
        again = ", ".join([f"%{name}_i + 1i64", *after[: len(states)], *written])
        ends = ", ".join([*states, *(f"%{n}" for n in stacks)])
        zeros = [f'zeros(shape={_attribute(k.shape)}, dtype="{k.dtype}")' for k in whole]
        start = ", ".join(["0i64", *map(self.value, loop.init), *zeros])
        return (
            f"let %{name}_run = fn ({declared}) -> {gives} {{\n"
            f"if (less(%{name}_i, {count}i64)) {{\n{takes}{lines}"
            f"let %{name}_next = {self.value(result)};\n%{name}_run({again})\n"
            f"}} else {{ ({ends}) }}\n}};\nlet %{name} = %{name}_run({start});"
        )

    def value(self, expr: Expr) -> str:
        match expr:
            case Var(name):
                return f"%{name}"
            case Constant(data):
                return self.constant(data)
            case Tuple(fields):
                comma = "," if len(fields) == 1 else ""
                return f"({', '.join(map(self.value, fields))}{comma})"
            case TupleGet(value, index):
                return f"{self.value(value)}.{index}"
            case If(condition, then, orelse):
                branches = f"{{ {self.body(then)} }} else {{ {self.body(orelse)} }}"
                return f"if ({self.value(condition)}) {branches}"
            case Call(FunctionRef(name), args):
                return f"@{name}({', '.join(map(self.value, args))})"
            case Call(Op(name)):
                return self.operator(name, expr)
            case _:
                raise UnsupportedError(f"no expression of Relay: {type(expr).__name__}")

    def constant(self, data: Array) -> str:
        if id(data) not in self.places:
            self.places[id(data)] = len(self.constants)
            self.constants.append(data)
        return f"meta[relay.Constant][{self.places[id(data)]}]"

    def operator(self, name: str, call: Call) -> str:
        args = [self.value(a) for a in call.args if not isinstance(a, ShapeValue)]
        if name in SAME:
            pairs = {"a_min": "min", "a_max": "max"} if name == "clip" else {}
            return _call(name, args, **{k: _of(call, v) for k, v in pairs.items()})
        found = _WRITERS.get(name)
        if found is None:
            raise UnsupportedError(f"the operator {name}")
        return found(self, call, args)

    def shape(self, value: Expr) -> tuple[int, ...]:
        kind = infer_type(value, {})
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        return tuple(d if isinstance(d, int) else -1 for d in kind.shape)

    def result(self, call: Call) -> tuple[int, ...]:
        kind = infer_type(call, {})
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        return tuple(d if isinstance(d, int) else -1 for d in kind.shape)


def _of(call: Call, name: str) -> Any:
    """An attribute, whose type depends on the operator."""
    return call.attrs[name]


def _call(name: str, args: Sequence[str], **attributes: object) -> str:
    given = [f"{k}={_attribute(v)}" for k, v in attributes.items() if v is not None]
    return f"{name}({', '.join([*args, *given])})"


def _attribute(value: object) -> str:
    match value:
        case tuple() | list():
            return f"[{', '.join(map(_attribute, value))}]"
        case bool():
            return str(value)
        case float():
            return f"{value!r}f"
        case DType():
            return f'"{value}"'
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def _conv2d(w: _Writer, call: Call, args: list[str]) -> str:
    top, left, bottom, right = _of(call, "padding")
    weight, groups = call.args[1], _of(call, "groups")
    out, inner, *kernel = w.shape(weight)
    how: dict[str, Any] = {
        "strides": _of(call, "strides"),
        "padding": (top, left, bottom, right),
        "dilation": _of(call, "dilation"),
        "groups": groups,
        "channels": out,
        "kernel_size": kernel,
        "out_dtype": _of(call, "out_dtype"),
    }
    if w.channels_last:
        assert isinstance(weight, Constant)
        deep = inner == 1 and groups == out
        order = (2, 3, 0, 1) if deep else (2, 3, 1, 0)
        args[1] = w.constant(np.ascontiguousarray(weight.data.transpose(order)))
        how |= {"data_layout": "NHWC", "kernel_layout": "HWOI" if deep else "HWIO"}
    return _call("nn.conv2d", args, **how)


def _batch_norm(w: _Writer, call: Call, args: list[str]) -> str:
    axis = 3 if w.channels_last else _of(call, "axis")
    return f"{_call('nn.batch_norm', args, axis=axis, epsilon=call.attrs['epsilon'])}.0"


def _pool(name: str) -> Callable[[_Writer, Call, list[str]], str]:
    def write(w: _Writer, call: Call, args: list[str]) -> str:
        keys = ["pool_size", "strides", "padding", "dilation", "ceil_mode"]
        keys += ["count_include_pad"] if "avg" in name else []
        layout = "NHWC" if w.channels_last else "NCHW"
        return _call(name, args, **{k: _of(call, k) for k in keys}, layout=layout)

    return write


def _reduction(name: str) -> Callable[[_Writer, Call, list[str]], str]:
    def write(w: _Writer, call: Call, args: list[str]) -> str:
        axes = _of(call, "axis")
        if w.channels_last and len(w.shape(call.args[0])) == 4:
            axes = tuple(_LAST[a] for a in axes)
        return _call(name, args, axis=axes, keepdims=_of(call, "keepdims"))

    return write


def _reshape(w: _Writer, call: Call, args: list[str]) -> str:
    shape = call.args[1]
    assert isinstance(shape, ShapeValue)
    return _call("reshape", args, newshape=shape.dims)


def _matmul(w: _Writer, call: Call, args: list[str]) -> str:
    """Of matrices, or of batches, which Relay has of one axis."""
    left, right = (w.shape(a) for a in call.args)
    out = _of(call, "out_dtype")
    if len(right) == 2:
        return _call("nn.matmul", args, units=right[-1], out_dtype=out)
    if len(left) == 3:
        return _call("nn.batch_matmul", args, out_dtype=out)
    both = zip(args, (left, right), strict=True)
    flat = [_call("reshape", [a], newshape=(prod(s[:-2]), *s[-2:])) for a, s in both]
    product = _call("nn.batch_matmul", flat, out_dtype=out)
    return _call("reshape", [product], newshape=w.result(call))


def _layer_norm(w: _Writer, call: Call, args: list[str]) -> str:
    (axis,) = _of(call, "axes")
    return _call("nn.layer_norm", args, axis=axis, epsilon=_of(call, "epsilon"))


def _expand_dims(w: _Writer, call: Call, args: list[str]) -> str:
    axes = _of(call, "axis")
    assert all(b == a + 1 for a, b in pairwise(axes))
    return _call("expand_dims", args, axis=axes[0], num_newaxis=len(axes))


def _concat(w: _Writer, call: Call, args: list[str]) -> str:
    return _call("concatenate", args, axis=_of(call, "axis"))


def _strided_slice(w: _Writer, call: Call, args: list[str]) -> str:
    begin, end = _of(call, "begin"), _of(call, "end")
    rank = len(begin)
    how = {"strides": _of(call, "strides") or (1,) * rank, "axes": _of(call, "axes")}
    return _call("strided_slice", args, begin=begin, end=end, **how)


def _split(w: _Writer, call: Call, args: list[str]) -> str:
    parts = _of(call, "indices_or_sections")
    return f"{_call('split', args, indices_or_sections=parts, axis=call.attrs['axis'])}"


def _argsort(w: _Writer, call: Call, args: list[str]) -> str:
    return _call("argsort", args, axis=_of(call, "axis"),
                 is_ascend=not _of(call, "descending"), dtype="int64")  # fmt: skip


def _argmax(w: _Writer, call: Call, args: list[str]) -> str:
    return _call("argmax", args, axis=(_of(call, "axis"),), keepdims=_of(call, "keepdims"))


def _gather_nd(w: _Writer, call: Call, args: list[str]) -> str:
    """Relay has the axis of coordinates first; what was brought from there is what it was."""
    indices = call.args[1]
    rank = len(w.shape(indices))
    before = w.bound.get(indices.name) if isinstance(indices, Var) else None
    if (
        isinstance(before, Call)
        and before.callee == Op("permute_dims")
        and tuple(_of(before, "axes")) == (*range(1, rank), 0)
    ):
        args[1] = w.value(before.args[0])
    else:
        args[1] = _call("transpose", [args[1]], axes=(rank - 1, *range(rank - 1)))
    return _call("gather_nd", args, batch_dims=_of(call, "batch_dims"))


def _renamed(name: str, **attributes: str) -> Callable[[_Writer, Call, list[str]], str]:
    """An operator of another name; its attributes by ours."""

    def write(w: _Writer, call: Call, args: list[str]) -> str:
        return _call(name, args, **{k: _of(call, v) for k, v in attributes.items()})

    return write


_WRITERS: Mapping[str, Callable[[_Writer, Call, list[str]], str]] = {
    "nn.conv2d": _conv2d,
    "nn.batch_norm": _batch_norm,
    "nn.max_pool2d": _pool("nn.max_pool2d"),
    "nn.avg_pool2d": _pool("nn.avg_pool2d"),
    **{name: _reduction(name) for name in _REDUCTIONS},
    "argsort": _argsort,
    "argmax": _argmax,
    "gather_nd": _gather_nd,
    "reshape": _reshape,
    "matmul": _matmul,
    "nn.layer_norm": _layer_norm,
    "nn.softmax": _renamed("nn.softmax", axis="axis"),
    "permute_dims": _renamed("transpose", axes="axes"),
    "astype": _renamed("cast", dtype="dtype"),
    "dequantize": _renamed("qnn.dequantize", axis="axis", out_dtype="out_dtype"),
    "take": lambda w, call, args: _call("take", args, axis=_of(call, "axis"), mode="fast"),
    "expand_dims": _expand_dims,
    "concat": _concat,
    "strided_slice": _strided_slice,
    "split": _split,
    "squeeze": _renamed("squeeze", axis="axis"),
}


def emitted(module: IRModule, *, channels_last: bool = False) -> Emitted:
    """A module as Relay's text.

    Raises:
        UnsupportedError: It holds what no text of Relay says.
    """
    writer = _Writer(module, channels_last)
    texts = [writer.function(name, f) for name, f in module.graph_functions().items()]
    return Emitted(HEADER + "".join(texts), writer.constants)
