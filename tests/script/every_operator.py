"""A user's program that calls every operator and scalar function, for type checkers to read."""

from __future__ import annotations

import numpy as np

from unity import script
from unity.ir.dtype import SHORT_NAMES, DType, dtype
from unity.ir.graph import Function
from unity.ir.types import TensorType, TupleType, Type
from unity.op.registry import OpDef, RefArg, Sample
from unity.op.table import OPS
from unity.script.printer.literals import NO_SYMBOLS
from unity.script.printer.types import type_text
from unity.script.scalar_names import SCALAR_SIGNATURES

HEAD = """\
from __future__ import annotations

from unity import script
from unity.script import Buffer, R, T, Tensor, dim, {}

n = dim("n")
m = dim("m")


@script.prim_func
def scalars(a: f32[Buffer, 4], b: i32[Buffer, 4], c: f32[Buffer, 4]) -> None:
"""
SIZES = """

@script.prim_func
def sizes(a: f32[Buffer, n, m], c: f32[Buffer, n]) -> None:
    for i in range(n):
        if n < m:
            c[i] = a[i, 0]
        for j in range(1, m - 1):
            if i + j < n and n // 2 >= 3:
                c[i] = c[i] + a[i, j] * T.cast("float32", j % n)


@script.function
def shapes(x: f32[Tensor, n, m]) -> f32[Tensor, n, m]:
    y = R.reshape(x, (m * n,)) * n + x.shape[1]
    if n > 4:
        y = y - R.prim(n)
    return R.reshape(2.0 / y, x.shape)
"""
WRONG = """\
from unity.script import R, T, Buffer, Tensor, f32

def graph(x: f32[Tensor, 4]) -> None:
    R.matmull(x, x)  # wrong
    R.nn.rellu(x)  # wrong
    R.nn.softmax(x, axis="last")  # wrong
    R.nn.softmax(x, axes=1)  # wrong
    R.matmul(x)  # wrong
    R.split(x, 2.5)  # wrong
    R.acme.swish(x, beta=2.0)

def kernel(a: f32[Buffer, 4]) -> None:
    a[0] = T.expp(a[1])  # wrong
    a[0] = T.exp(a[1], a[2])  # wrong
    a[0] = T.exp(a)  # wrong
"""
INTEGERS = {
    "truncdiv", "truncmod", "floordiv", "floormod", "and_", "or_", "xor", "shl", "shr", "popcount",
    "of_bits", "clz",
}  # fmt: skip


def every_operator() -> str:
    """Each operator is called as one of its own samples: what is typed is valid IR, too."""
    calls = "".join(_operator_call(row) for row in OPS.values())
    program = _scalar_calls() + SIZES + calls
    used = sorted(short for short in SHORT_NAMES if f" {short}[" in HEAD + program)
    return HEAD.format(", ".join(used)) + program


def _scalar_calls() -> str:
    """Every scalar function, on floats where it takes them."""
    lines = []
    for path, signature in SCALAR_SIGNATURES.items():
        count = sum(not p.named_only for p in signature.params)
        of = "b" if path.removeprefix("T.") in INTEGERS else "a"
        args = ", ".join(f"{of}[{i}]" for i in range(count))
        lines.append(f"    T.evaluate({path}({args}))\n")
    return "".join(lines)


def _operator_call(row: OpDef) -> str:
    """A graph function that calls the operator as its first sample does; none without samples."""
    samples = row.samples(0) if row.samples is not None else ()
    if not samples:
        return ""
    return _function(row, samples[0])


def _function(row: OpDef, sample: Sample) -> str:
    params: list[str] = []
    args = [_argument(arg, params) for arg in sample.args]
    kinds = {p.name for p in row.params}
    attrs = [f"{k}={_literal(v)}" for k, v in sample.attrs.items() if k in kinds]
    call = f"R.{row.name}({', '.join([*args, *attrs])})"
    name = row.name.replace(".", "_") + "_"
    head = f"@script.function\ndef {name}({', '.join(params)})"
    found = script.parse(f"{head}:\n    return {call}\n")[name]
    assert isinstance(found, Function)
    body = f"return {call}"
    if isinstance(found.result, TupleType):
        fields = ", ".join(f"y{i}" for i in range(len(found.result.fields)))
        body = f"{fields} = {call}\n    return {fields}"
    return f"\n\n{head} -> {_annotation(found.result)}:\n    {body}\n"


def _annotation(kind: Type) -> str:
    if isinstance(kind, TupleType):
        return f"tuple[{', '.join(_annotation(f) for f in kind.fields)}]"
    if not isinstance(kind, TensorType):
        return "R.Object"
    shape = kind.shape
    if isinstance(shape, tuple) and not all(isinstance(d, int) for d in shape):
        return type_text(TensorType(len(shape), kind.dtype), NO_SYMBOLS)
    return type_text(kind, NO_SYMBOLS)


def _argument(arg: RefArg, params: list[str]) -> str:
    if isinstance(arg, np.ndarray):
        name = f"x{len(params)}"
        params.append(f"{name}: {type_text(TensorType(arg.shape, dtype(arg.dtype)), NO_SYMBOLS)}")
        return name
    parts = [_argument(a, params) if isinstance(a, np.ndarray) else str(a) for a in arg]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, DType) else repr(value)
