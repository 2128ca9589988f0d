"""Relay's text: what each construct becomes, and where errors point."""

import time
from pathlib import Path

import numpy as np
import pytest

from tests.frontend.relay.saved import Array, Graph, metadata
from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.read import read_relay
from unity.ir.dtype import dtype

HEADER = '#[version = "0.0.5"]\n'
CALYX = Path("/work/shared/relay/calyx")


def main_of(text: str) -> syntax.Function:
    """The function `main` of a text without its header."""
    return read_relay(HEADER + text).functions["main"]


def call(expr: syntax.Expr, name: str) -> syntax.Call:
    """An expression that must be a call of an operator."""
    assert isinstance(expr, syntax.Call)
    assert isinstance(expr.callee, syntax.Op)
    assert expr.callee.name == name
    return expr


def test_graph_bindings_are_shared_and_lets_are_lets() -> None:
    main = main_of(
        """def @main(%x: Tensor[(1, ?), float32] /* ty=Tensor[(1, ?), float32] */) -> float32 {
          %0 = nn.relu(%x) /* span=aten::relu:0:0 /* nested */ */;
          let %y: Tensor[(1, ?), float32] = add(%0, %0); // twice
          sum(%y, axis=[0, 1])
        }"""
    )
    (x,) = main.params
    assert x.type == syntax.TensorType((1, None), dtype("float32"))
    assert main.result == syntax.TensorType((), dtype("float32"))
    assert isinstance(main.body, syntax.Let)
    added = call(main.body.value, "add")
    assert added.arguments[0] is added.arguments[1]
    total = call(main.body.body, "sum")
    assert total.arguments == (main.body.var,)
    assert total.attributes == {"axis": (0, 1), "keepdims": False, "exclude": False}
    assert total.given == ("axis",)


def test_names_with_dots_and_projections() -> None:
    main = main_of(
        """def @main(%features.0.weight: Tensor[(4), float32], %input:0: Tensor[(4), float32],
                     %scale:float32, %p {virtual_device="cpu"}: (float32, (float32, float32))) {
          %0 = split(%features.0.weight, indices_or_sections=2);
          (%0.1, %input:0, %scale, %p.1.0)
        }"""
    )
    assert [p.name for p in main.params] == ["features.0.weight", "input:0", "scale", "p"]
    body = main.body
    assert isinstance(body, syntax.Tuple)
    first, second, third, fourth = body.fields
    assert isinstance(first, syntax.TupleGetItem)
    assert first.index == 1
    assert (second, third) == main.params[1:3]
    assert isinstance(fourth, syntax.TupleGetItem)
    assert isinstance(fourth.tuple, syntax.TupleGetItem)
    assert (fourth.tuple.index, fourth.index) == (1, 0)


def test_infix_operators_by_rank() -> None:
    main = main_of("def @main(%a: float32) { %a + %a * 2f - %a -1.5f16 <= -1f }")
    compared = call(main.body, "less_equal")
    outer = call(compared.arguments[0], "subtract")
    half = outer.arguments[1]
    assert isinstance(half, syntax.Constant)
    assert half.value == np.float16(1.5)
    assert half.value.dtype == np.float16
    inner = call(outer.arguments[0], "subtract")
    added = call(inner.arguments[0], "add")
    assert call(added.arguments[1], "multiply").arguments[0] is main.params[0]


def test_numbers() -> None:
    body = main_of("def @main() { (1, 2i64, 3f, 1e-05f, 0.5f64, True, inff, -inff, 7u8) }").body
    assert isinstance(body, syntax.Tuple)
    values = [f.value for f in body.fields if isinstance(f, syntax.Constant)]
    assert [str(v.dtype) for v in values] == [
        *("int32", "int64", "float32", "float32", "float64", "bool", "float32", "float32"),
        "uint8",
    ]
    assert values[7] == -np.inf
    assert not any(v.flags.writeable for v in values)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1 /* ty=int64 */", 1, "int64"),
        ("-114514 /* ty=int64 span=a.b:1:2 */", -114514, "int64"),
        ("4294967296/*ty=int64*/", 4294967296, "int64"),
        ("0.5f /* ty=float16 */", 0.5, "float16"),
        ("2 /* ty=float64 */", 2, "float64"),
        ("3i8 /* ty=int64 */", 3, "int8"),
        ("1 /* ty=Tensor[(2), int64] */", 1, "int32"),
        ("1 /* en_id=4 */", 1, "int32"),
        ("1.5f /* ty=int32 */", 1.5, "float32"),
        ("int64(7) /* ty=int64 */", 7, "int64"),
        ("float16(-0.5)", -0.5, "float16"),
        ("bool(1)", True, "bool"),
    ],
)
def test_numbers_whose_dtype_older_printers_left_to_the_comment(
    text: str, value: float, kind: str
) -> None:
    for header in (HEADER, "v0.0.4\n"):
        body = read_relay(f"{header}def @main() {{ {text} }}").functions["main"].body
        assert isinstance(body, syntax.Constant)
        assert (body.value.dtype.name, body.value.item()) == (kind, value)


def test_sizes_and_attributes_as_older_printers_wrote_them() -> None:
    main = main_of(
        "def @main(%x: Tensor[(int64(2), meta[tir.Div][0], 3i64), float32]) {\n"
        "  reshape(%x, newshape=[int64(-1), 3i64])\n}"
    )
    assert isinstance(main.params[0].type, syntax.TensorType)
    assert main.params[0].type.shape == (2, None, 3)
    assert call(main.body, "reshape").attributes["newshape"] == (-1, 3)


def test_functions_control_and_references() -> None:
    main = main_of(
        """def @main(%x: int32) {
          %0 = fn (%p: int32, Primitive=1, Composite="dnnl.add", hash="ab") -> int32 { %p + 1 };
          let %loop = fn (%i: int32) -> int32 { if (%i < 3) { %loop(%0(%i)) } else { %i } };
          let %cell = ref(%x);
          ref_write(%cell, %loop(%x));
          @other(ref_read(%cell))
        }
        def @other[A](%a: A, Compiler="dnnl") -> A { %a }"""
    )
    assert isinstance(main.body, syntax.Let)
    loop = main.body.value
    assert isinstance(loop, syntax.Function)
    assert isinstance(loop.body, syntax.If)
    again = loop.body.then
    assert isinstance(again, syntax.Call)
    assert again.callee is main.body.var  # it calls itself
    inner = again.arguments[0]
    assert isinstance(inner, syntax.Call)
    assert isinstance(inner.callee, syntax.Function)
    assert inner.callee.attributes == {"Primitive": 1, "Composite": "dnnl.add", "hash": "ab"}
    cell = main.body.body
    assert isinstance(cell, syntax.Let)
    assert isinstance(cell.value, syntax.RefCreate)
    written = cell.body
    assert isinstance(written, syntax.Let)
    assert written.var.name == "_"
    assert isinstance(written.value, syntax.RefWrite)


def test_a_let_sees_what_had_its_name_before() -> None:
    body = main_of("def @main(%x: float32) { let %x = nn.relu(%x); %x }").body
    assert isinstance(body, syntax.Let)
    assert call(body.value, "nn.relu").arguments[0] is not body.var


def test_types_and_patterns() -> None:
    module = read_relay(
        HEADER
        + """type Shape[A] { Circle(A), Pair(A, Shape[A]), Point }
        extern type Opaque
        def @main[A](%s: Shape[A], %f: fn(A, ref(A)) -> (A,)) -> Tensor[(2), float32] {
          match? (%s) {
            Circle(%r) => %r,
            Pair(_, Circle(%r)) => %r,
            (%a, _) => %a,
            %other => Point
          }
        }"""
    )
    declaration, constructor, tag = module.constructor("Pair")
    assert (declaration.name, tag) == ("Shape", 1)
    parameter = syntax.TypeVar("A")
    assert constructor.fields == (parameter, syntax.AdtType("Shape", (parameter,)))
    assert module.types["Opaque"].constructors == ()
    main = module.functions["main"]
    assert main.params[1].type == syntax.FunctionType(
        (parameter, syntax.RefType(parameter)), syntax.TupleType((parameter,))
    )
    assert isinstance(main.body, syntax.Match)
    assert not main.body.complete
    nested = main.body.clauses[1].pattern
    assert isinstance(nested, syntax.ConstructorPattern)
    inner = nested.fields[1]
    assert isinstance(inner, syntax.ConstructorPattern)
    bound = inner.fields[0]
    assert isinstance(bound, syntax.VarPattern)
    assert main.body.clauses[1].body is bound.var


def test_the_prelude_by_name() -> None:
    module = read_relay(
        HEADER
        + "def @main(%xs: List[int32]) { @rev(match (%xs) { Cons(_, %t) => %t, Nil => %xs })}"
    )
    assert set(module.functions) == {"main", "rev", "foldl"}
    assert module.constructor("Nil")[2] == 1
    own = read_relay(HEADER + "type List { Cons(int32, List), Nil } def @main() { Nil }")
    assert set(own.types) == {"List"}


def test_metadata() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = "def @main(%x: Tensor[(1, 3), float32]) { %0 = nn.dense(%x, meta[relay.Constant][0], "
    text += "units=2); add(%0, meta[relay.Constant][1]) }\n"
    module = read_relay(HEADER + text + metadata([weight, np.full((), 2, np.float32)]))
    dense = call(call(module.functions["main"].body, "add").arguments[0], "nn.dense")
    held = dense.arguments[1]
    assert isinstance(held, syntax.Constant)
    np.testing.assert_array_equal(held.value, weight)
    given = read_relay(HEADER + text, constants=[weight, weight])
    assert call(given.functions["main"].body, "add").arguments[1] is not None


def test_attributes_may_stand_in_the_metadata() -> None:
    graph = Graph()
    one = graph.add("relay.attrs.SoftmaxAttrs", axis=1)
    held = graph.array(one)
    graph.nodes.append({"type_key": "Map", "keys": ["relay.attrs.SoftmaxAttrs"], "data": [held]})
    section = "\n#[metadata]\n" + graph.saved(len(graph.nodes) - 1)
    main = main_of("def @main(%x) { nn.softmax(%x, meta[relay.attrs.SoftmaxAttrs][0]) }" + section)
    assert call(main.body, "nn.softmax").attributes == {"axis": 1}


def test_the_older_text() -> None:
    module = read_relay(
        "v0.0.4\nfree_var %x: Tensor[10, float32];\nlet %y = -%x;\n%y;;\n%y + [1, 2]"
    )
    main = module.functions["main"]
    assert main.params[0].type == syntax.TensorType((10,), dtype("float32"))
    multiplied = read_relay("v0.0.4\ndef @main(%a, %b) { nn.batch_matmul(%a, %b) }")
    assert call(multiplied.functions["main"].body, "nn.batch_matmul").attributes["transpose_b"]
    # 0.8 and later write what differs from false
    now = main_of("def @main(%a, %b) { nn.batch_matmul(%a, %b) }")
    assert not call(now.body, "nn.batch_matmul").attributes["transpose_b"]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("def @main() { int8(300) }", "2:15", "this is no number of the dtype int8"),
        ("def @main() { int64() }", "2:21", "expected a number, found ')'"),
        ("def @main(%x: Tensor[(int64(-2)), int8]) { %x }", "2:32", "-2 is no dim"),
        ("def @main(%x) { nn.conv2(%x) }", "2:17", "no operator 'nn.conv2'"),
        ('def @main(%x) {\n  clip(%x, a_min="0", a_max=6f) }', "3:12", "expected a number"),
        ("def @main(%x) { nn.relu(%y) }", "2:25", "%y is not bound here"),
        ("def @main(%x) { @f(%x) }", "2:17", "no function @f"),
        ("def @main(%x: Foo) { %x }", "2:15", "no type 'Foo'"),
        ("def @main(%x: Tensor[(1), flot]) { %x }", "2:27", "expected a dtype"),
        ("def @main(%x: Tensor[(-1), int8]) { %x }", "2:23", "expected a dim"),
        ("def @main(%x) { meta[relay.Constant][0] }", "2:17", "no metadata section"),
        ("def @main(%x, %x) { %x }", "2:15", "two parameters are called %x"),
        ("def @main(%x) { %x }\ndef @main(%x) { %x }", "3:1", "@main is defined twice"),
        ("def @main(%x) { nn.relu(%x, %x) }", "2:17", "called with 2 arguments, it takes 1"),
        ("def @main(%x) { /* %x }", "2:17", "a comment that does not end"),
        ('def @main(%x) { nn.pad(%x, mode="a) }', "2:33", "a string that does not end"),
        ("def @main(%x) { let %y = %x }", "2:29", "expected ';' after the value of a let"),
        ("def @main(%x) { add(%x, %x)", "2:28", "found the end"),
        ("def @main(%x) { match (%x) { Foo(%a) => %a } }", "2:30", "no type has the constructor"),
        ("def @main(%x) { " + "(" * 5000, "2:", "nested too deeply"),
        ("def @main(%x) { 300i8 }", "2:17", "is no number of its dtype"),
        ("def @main(%x) { add(%x, relu) }", "2:25", "no constructor is called 'relu'"),
        ("def @main(%x) { ~%x }", "2:17", "'~' is no part of Relay's text"),
    ],
)
def test_errors_tell_the_place(text: str, place: str, message: str) -> None:
    with pytest.raises(UnityError) as caught:
        read_relay(HEADER + text)
    shown = str(caught.value)
    assert message in shown
    assert f">:{place}" in shown
    assert "^" in shown
    assert len(shown) < 700


def test_long_chains_need_no_stack_and_no_time() -> None:
    count = 1500
    lets = [f"let %v{i + 1} = nn.relu(%v{i});" for i in range(count)]
    bindings = [f"%{i} = add(%{i - 1 if i else f'v{count}'}, 1f);" for i in range(count)]
    text = "def @main(%v0: float32) {\n" + "\n".join(lets + bindings) + f"\n%{count - 1} }}"
    body: syntax.Expr = main_of(text).body
    for _ in range(count):
        assert isinstance(body, syntax.Let)
        body = body.body
    for _ in range(count):
        body = call(body, "add").arguments[0]
    assert isinstance(body, syntax.Var)


def test_what_printers_write() -> None:
    """Forms that TVM's printer uses, each in one line of a program."""
    main_of(
        """def @main(%data: Tensor[(1, 3, 224, 224), float32] /* ty=Tensor[(1), int8] span=a.b */,
            hash="d41d", T_attrs={"layout"="NCHW", "n"=2}) {
          %0 = nn.pad(%data, 0f /* ty=float32 */, pad_width=[[0i64, 0i64], [0, 0], [3, 3], [3, 3]]);
          %1 = image.resize2d(%0, size=[2, 2], roi=[0f, 0f, 0f, 0f], rounding_method="");
          %2 = arange(0, 4, 1, start=meta[relay.Constant][0], stop=%data,
            step=meta[relay.Constant][0], dtype="int32");
          %3 = qnn.requantize(%1, 1f, 0, 0.5f, 0, axis=1, out_dtype="int8");
          %4 = fn (%p0: Tensor[(1, 3), float32] /* ty=Tensor[(1, 3), float32] */, Inline=1,
              Compiler="dnnl", global_symbol="tvmgen_default_dnnl_main_0") -> (int8,) { (%p0,) }
              /* ty=fn (Tensor[(1, 3), float32]) -> (int8,) */;
          %5 = on_device(%3, virtual_device=VirtualDevice(type=1, id=(0)), constrain_result=1);
          %6 = split(%5, indices_or_sections=[1i64, 2i64], axis=1) /* ty=(Tensor[(1), int8],) */;
          %7 = strided_slice(%6.0, begin=[0, 0], end=[1, 2], strides=[1], axes=None);
          %8 = full(1f, shape=[], dtype="float32");
          (%4(%7), %2, zeros(shape=[1, 2], dtype="float32"), %8,)
        }
        """
        + metadata([np.zeros((), np.int32)])
    )


def test_a_large_text_is_read_in_time() -> None:
    count = 2000
    lines = [
        f"%{i} = nn.conv2d({f'%{i - 1}' if i else '%x'}, meta[relay.Constant][{i % 50}] /* ty="
        f"Tensor[(4, 4, 1, 1), float32] span=aten::_convolution_{i}:0:0 */, padding=[0, 0, 0, 0], "
        "channels=4, kernel_size=[1, 1]) /* ty=Tensor[(1, 4, 56, 56), float32] span=a:0:0 */;"
        for i in range(count)
    ]
    text = "def @main(%x: Tensor[(1, 4, 56, 56), float32]) {\n" + "\n".join(lines)
    constants: list[Array] = [np.full((4, 4, 1, 1), i, np.float32) for i in range(50)]
    text += f"\n%{count - 1} }}\n" + metadata(constants)
    begin = time.process_time()
    body = main_of(text).body
    assert time.process_time() - begin < 3  # a twentieth of a large model
    weight = call(body, "nn.conv2d").arguments[1]
    assert isinstance(weight, syntax.Constant)
    assert weight.value[0, 0, 0, 0] == (count - 1) % 50


@pytest.mark.skipif(not CALYX.is_dir(), reason="needs the samples of calyx")
def test_the_samples_of_calyx() -> None:
    paths = sorted(CALYX.glob("*.relay"))
    assert len(paths) == 40
    for path in paths:
        assert "main" in read_relay(path).functions
