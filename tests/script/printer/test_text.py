"""What printed programs look like."""

from __future__ import annotations

import io
import sys
from textwrap import dedent

import ml_dtypes
import numpy as np
import pytest

import unity
from unity.ir.attrs import Attrs
from unity.ir.dims import dim, floordiv
from unity.ir.dtype import BOOL, FLOAT16, FLOAT32, INT32, INT64, DType
from unity.ir.graph import Constant, Function, If, Op, ShapeValue, Tuple, Var
from unity.ir.module import ExternFunc, IRModule
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, PrimFunc, Seq, Stmt, Store
from unity.ir.types import FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType, Type
from unity.op.builder import GraphBuilder
from unity.op.call import call_op
from unity.script import constants_of, parse, print_module, show
from unity.script.printer import fragment, html

n = dim("n")
X, Y = PrimVar("x"), PrimVar("y")
F = PrimVar("f", FLOAT32)
P, Q = PrimVar("p", BOOL), PrimVar("q", BOOL)
A = Buffer("a", (imm(4), SizeVar("n")), FLOAT32)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((X + Y) * 2, "(x + y) * 2"),
        (X + Y * 2, "x + y * 2"),
        (X - (Y - 1), "x - (y - 1)"),
        ((X - Y) - 1, "x - y - 1"),
        (X // (Y // 2), "x // (y // 2)"),
        (-X * 2, "-x * 2"),
        (-(X * 2), "-(x * 2)"),
        (X * imm(-3), "x * -3"),
        (Binary("and", X, Binary("or", Y, imm(1))), "x & (y | 1)"),
        (Binary("shl", X + 1, imm(2)), "x + 1 << 2"),
        (Binary("and", P, Binary("or", Q, Not(P))), "p and (q or not p)"),
        (Not(Binary("and", P, Q)), "not (p and q)"),
        (Not(Compare("lt", X, Y)), "not x < y"),
        (Compare("eq", P, Compare("lt", X, Y)), "p == (x < y)"),
        (Binary("truncdiv", X, imm(2)), "T.truncdiv(x, 2)"),
        (Binary("max", X, Y + 1), "T.max(x, y + 1)"),
        (F * 2, "f * 2.0"),
        (Imm(1.5, FLOAT16), 'T.imm("float16", 1.5)'),
        (imm(3, INT32) + imm(4, INT32), 'T.imm("int32", 3) + 4'),
        (imm(3) + imm(4), "3 + 4"),
        (Imm(float("inf"), FLOAT32) * F, 'T.imm("float32", "inf") * f'),
        (Imm(-0.0, FLOAT32), "-0.0"),
        (Imm(0.1, FLOAT32), "0.1"),
        (Imm(True, BOOL), "True"),
        (Select(P, F, Imm(0.0, FLOAT32)), "T.select(p, f, 0.0)"),
        (Cast(INT32, F), 'T.cast("int32", f)'),
        (Load(A, (X, SizeVar("n") - 1)), "a[x, n - 1]"),
        (Load(Buffer("s", (), FLOAT32), ()), "s[()]"),
        (Load(A, (X, Y), P), "T.load(a, (x, y), p)"),
        (Intrinsic("exp", (F,), FLOAT32), "T.exp(f)"),
        (Intrinsic("fmod", (F, Imm(2.0, FLOAT32)), FLOAT32), "T.fmod(f, 2.0)"),
        (Intrinsic("magic", (X,), INT32), 'T.call("magic", x, dtype="int32")'),
        (Ramp(X, imm(1), 8) + Broadcast(Y, 8), "T.ramp(x, 1, 8) + T.broadcast(y, 8)"),
    ],
)
def test_expressions_have_the_fewest_parentheses(expr: PrimExpr, text: str) -> None:
    assert fragment(expr) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (TensorType((n, 128), FLOAT32), "f32[Tensor, n, 128]"),
        (TensorType((), INT64), "i64[Tensor, ()]"),
        (TensorType(2, BOOL), "boolean[Tensor, R.rank(2)]"),
        (TensorType(None, None), "R.any_dtype[Tensor, ...]"),
        (TensorType((floordiv(n + 1, 2),), DType("bfloat16")), "bf16[Tensor, (n + 1) // 2]"),
        (ShapeType((n, 4)), "R.Shape(n, 4)"),
        (ShapeType(3), "R.Shape(R.rank(3))"),
        (ShapeType(None), "R.Shape(...)"),
        (PrimType(INT64, n * 2), 'R.Prim("int64", n * 2)'),
        (TupleType((ObjectType(), PrimType(BOOL))), 'R.Tuple(R.Object, R.Prim("bool"))'),
        (
            FuncType((ObjectType(),), ObjectType(), False),
            "R.Func([R.Object], R.Object, pure=False)",
        ),
    ],
)
def test_types_are_annotations(kind: Type, text: str) -> None:
    assert fragment(kind) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (np.float32(0.1), 'R.const(0.1, "float32")'),
        (np.float64(0.1) + 0.2, 'R.const(0.30000000000000004, "float64")'),
        (np.float32(-0.0), 'R.const(-0.0, "float32")'),
        (
            np.array([np.inf, -np.inf], np.float32),
            'R.const([float("inf"), float("-inf")], "float32")',
        ),
        (np.array([[True], [False]]), 'R.const([[True], [False]], "bool")'),
        (np.array(0.1, ml_dtypes.bfloat16), 'R.const(0.100098, "bfloat16")'),
        (np.int8(-3), 'R.const(-3, "int8")'),
        (np.zeros((0, 3), np.float32), 'R.const([], "float32", shape=(0, 3))'),
    ],
)
def test_small_constants_are_written_out_exactly(data: np.generic, text: str) -> None:
    array = np.asarray(data)
    assert fragment(Constant(array)) == text
    b = GraphBuilder()
    m = IRModule({"main": b.finish(b.emit(Constant(array)))})
    back = parse(print_module(m))["main"]
    assert isinstance(back, Function)
    (binding,) = back.body.blocks[0].bindings
    assert isinstance(binding.value, Constant)
    assert binding.value.data.tobytes() == array.tobytes()
    assert binding.value.data.shape == array.shape


def test_large_constants_have_names_and_their_data_beside_the_text() -> None:
    b = GraphBuilder()
    data = np.arange(40, dtype=np.float32)
    first, second = Constant(data, "conv.weight"), Constant(data + 1, "conv.weight")
    b.emit(first, "w")
    v = b.op("add", b.op("add", first, second), Constant(data))
    m = IRModule({"main": b.finish(v)})
    assert 'R.const("conv.weight")' in print_module(m)
    assert {k: a[0] for k, a in constants_of(m).items()} == {
        "conv.weight": 0.0,
        "conv.weight_1": 1.0,
        "const_2": 0.0,
    }


def test_a_nan_with_a_payload_is_kept_bit_for_bit() -> None:
    odd = np.array([0x7FC00001], np.uint32).view(np.float32)
    b = GraphBuilder()
    m = IRModule({"main": b.finish(b.emit(Constant(odd)))})
    assert constants_of(m)["const_0"].tobytes() == odd.tobytes()


def test_shadowing_keywords_and_symbols_get_names_of_their_own() -> None:
    out = Buffer("n", (SizeVar("n"),), FLOAT32)
    outer, inner, word = PrimVar("i"), PrimVar("i"), PrimVar("for")
    store = Store(out, (outer + inner + word,), Imm(0.0, FLOAT32))
    body: Stmt = store
    for var in (word, inner, outer):
        body = For(var, imm(0), imm(1), body)
    after = For(PrimVar("i"), imm(0), imm(2), Store(out, (imm(0),), Imm(1.0, FLOAT32)))
    assert PrimFunc((out,), Seq((body, after))).script("shadow") == dedent("""\
        n = dim("n")


        @script.prim_func
        def shadow(n_1: f32[Buffer, n]) -> None:
            for i, i_1, for_ in T.grid(1, 1, 1):
                n_1[i + i_1 + for_] = 0.0
            for i in range(2):
                n_1[0] = 1.0
        """)


def test_declarations_that_end_early_stand_in_a_suite() -> None:
    out, temp = Buffer("out", (), INT64), Buffer("temp", (imm(4),), INT64, scope="local")
    x = PrimVar("x")
    let = Let(x, imm(2), Store(out, (), x))
    alloc = Allocate(temp, Seq((Store(temp, (imm(0),), imm(1)), IfThen(P, Seq(()), let))))
    assert PrimFunc((out, P), Seq((let, alloc))).script() == dedent("""\
        @script.prim_func
        def main(out: i64[Buffer, ()], p: T.scalar("bool")) -> None:
            with T.suite():
                x = T.let(2, "int64")
                out[()] = x
            temp = T.alloc((4,), "int64", scope="local")
            temp[0] = 1
            if p:
                pass
            else:
                x = T.let(2, "int64")
                out[()] = x
        """)


def test_a_graph_function_reads_as_python() -> None:
    b = GraphBuilder()
    x = b.param("x", TensorType((n, 4), FLOAT32))
    y = b.emit(call_op("nn.relu", x), "y")
    z = b.emit(call_op("reshape", call_op("multiply", y, 2.0), (4, n)), "z")
    s = b.emit(call_op("sum", z, axis=(0,), keepdims=True), "s")
    f = b.finish(b.emit(Tuple((s, ShapeValue((n, 2)))), "out"))
    assert IRModule({"main": f}).script() == dedent("""\
        n = dim("n")


        @script.function
        def main(x: f32[Tensor, n, 4]) -> R.Tuple(f32[Tensor, 1, n], R.Shape(n, 2)):
            with R.dataflow():
                y = R.nn.relu(x)
                multiply = R.multiply(y, 2.0)
                z = R.reshape(multiply, (4, n))
                s = R.sum(z, axis=(0,), keepdims=True)
                out = (s, R.shape(n, 2))
            return out
        """)


def test_branches_end_with_the_name_of_the_result() -> None:
    b = GraphBuilder(dataflow=False)
    x = b.param("x", TensorType((3,), FLOAT32))
    c = b.param("c", TensorType((), BOOL))
    then, orelse = b.child(), b.child()
    computed = then.body(then.op("exp", x))
    y = b.emit(If(c, computed, orelse.body(x)), "y")
    assert b.finish(y).script() == dedent("""\
        @script.function
        def main(x: f32[Tensor, 3], c: boolean[Tensor, ()]) -> f32[Tensor, 3]:
            if c:
                y = R.exp(x)
            else:
                y = x
            return y
        """)


def test_facts_attributes_and_externs() -> None:
    k = dim("k", min=1, max=64, multiple_of=8)
    kind = FuncType((TensorType((k,), FLOAT32),), ObjectType())
    b = GraphBuilder()
    x = b.param("x", TensorType((k,), FLOAT32))
    f = b.finish(x, attrs=Attrs(source='a "b"', scale=0.5, axes=(1,)), pure=False)
    text = print_module(IRModule({"ext": ExternFunc("c_name", kind), "main": f}, Attrs(v=1)))
    assert text == dedent("""\
        k = dim("k", min=1, max=64, multiple_of=8)
        script.module_attrs({"v": 1})


        ext = script.extern("c_name", R.Func([f32[Tensor, k]], R.Object))


        @script.function(pure=False, attrs={"axes": (1,), "scale": 0.5, "source": 'a "b"'})
        def main(x: f32[Tensor, k]) -> f32[Tensor, k]:
            return x
        """)


def test_show_is_plain_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    b = GraphBuilder()
    f = b.finish(b.param("x", TensorType((3,), FLOAT32)))
    m = unity.IRModule({"main": f})
    m.show()
    assert capsys.readouterr().out == print_module(m) == str(m)
    f.show("other")
    assert "def other(" in capsys.readouterr().out
    show(m)
    assert capsys.readouterr().out == print_module(m)


def test_show_is_coloured_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    b = GraphBuilder()
    m = IRModule({"main": b.finish(b.param("x", TensorType((3,), FLOAT32)))})
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", "xterm-256color")
    m.show()
    assert "\x1b[" in out.getvalue()


def test_notebooks_get_html_with_the_text_escaped() -> None:
    b = GraphBuilder()
    f = b.finish(b.param("x", TensorType((3,), FLOAT32)), attrs=Attrs(source="<node>"))
    shown = html(f)
    assert "<pre" in shown
    assert "&lt;node&gt;" in shown
    assert f._repr_html_() == shown


def test_an_operator_alone_is_named() -> None:
    assert fragment(Op("nn.relu")) == "R.nn.relu"
    assert fragment(Var("x", ObjectType())) == "x"
