"""Mistakes in programs: each is reported at its place, saying what was got and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from textwrap import dedent, indent
from typing import cast

import numpy as np
import pytest

from unity import script
from unity.errors import UnityError
from unity.script import Buffer, R, T, Tensor, dim, f32

n = dim("n")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A body, the part of it that the caret must mark, and texts of the message and the hint."""

    body: str
    at: str
    says: str
    hint: str = ""


def check(source: str, mistake: Mistake) -> None:
    with pytest.raises(UnityError) as caught:
        script.parse(source)
    error = caught.value
    assert error.span is not None, str(error)
    line = source.splitlines()[error.span.line - 1]
    end = error.span.end_column if error.span.end_line == error.span.line else len(line)
    assert line[error.span.column : end] == mistake.at, str(error)
    assert mistake.says in error.message, str(error)
    assert mistake.hint in (error.hint or ""), str(error)
    shown = str(error).splitlines()
    assert shown[0].startswith(f"{error.span.file}:{error.span.line}:{error.span.column + 1}: ")
    assert any(text.endswith(line) for text in shown)
    assert any(set(text.strip()) == {"^"} for text in shown)


PRIM = """\
n = dim("n")
m = dim("m")


@script.prim_func
def kernel(a: f32[Buffer, n, 4], x: i32[Buffer, n], c: f32[Buffer, n, 4]) -> None:
"""

PRIM_MISTAKES = {
    "unknown name": Mistake("c[0, 0] = aa[0, 0]", "aa", "unknown name 'aa'", "did you mean"),
    "rank": Mistake("c[0] = 1.0", "0", "c has 2 dims, got 1 index", "its shape is (n, 4)"),
    "slice": Mistake("c[0, 0:4] = 1.0", "0:4", "one element at a time", "loop over it"),
    "store into a name": Mistake("y = 1.0\ny[0] = 2.0", "y", "can't store into 'y'", "T.alloc"),
    "change a name": Mistake("y = 1.0\ny += 2.0", "y += 2.0", "can't change 'y'", "in a buffer"),
    "bind twice": Mistake("y = 1.0\ny = 2.0", "y", "'y' is defined twice", "stand for one value"),
    "dtype of a store": Mistake("c[0, 0] = x[0]", "x[0]", "is int32, c holds float32", "T.cast"),
    "literal": Mistake("x[0] = 1.5", "1.5", "the literal 1.5 is no int32", "T.imm"),
    "literal too large": Mistake("x[0] = 3000000000", "3000000000", "does not fit int32"),
    "mixed dtypes": Mistake(
        "c[0, 0] = a[0, 0] * x[0]", "a[0, 0] * x[0]", "float32 and int32, expected one", "T.cast"
    ),
    "integer division": Mistake("x[0] = x[1] / 2", "x[1] / 2", "/ is for floats", "write //"),
    "float index": Mistake("c[a[0, 0], 0] = 1.0", "a[0, 0]", "must be an integer, got float32"),
    "condition": Mistake("if x[0]:\n    pass", "x[0]", "must be a bool, got int32", "compare"),
    "unknown dtype": Mistake(
        't = T.alloc((4,), "float31")', '"float31"', "unknown dtype 'float31'", "known dtypes"
    ),
    "shape no tuple": Mistake('t = T.alloc(4, "float32")', "4", "shape must be a tuple", "(n,)"),
    "symbol": Mistake(
        "for i in range(m):\n    c[0, 0] = 1.0", "m", "symbol 'm' is undefined", "m: T.size"
    ),
    "kinds": Mistake(
        'for i in range(n):\n    with T.block("b"):\n        vi = T.axis.remap("X", i)',
        '"X"',
        "unknown axis kind 'X'",
        "S is spatial",
    ),
    "number of kinds": Mistake(
        'for i in range(n):\n    with T.block("b"):\n        vi = T.axis.remap("SS", i)',
        '"SS"',
        "2 kinds for 1 loop variables",
    ),
    "remap of an expression": Mistake(
        'for i in range(n):\n    with T.block("b"):\n        vi = T.axis.remap("S", i + 1)',
        "i + 1",
        "takes loop variables",
        "T.axis.spatial",
    ),
    "axis twice": Mistake(
        'for i in range(n):\n    with T.block("b"):\n        vi = T.axis.spatial(n, i)\n'
        "        vi = T.axis.spatial(n, i)",
        "vi",
        "the axis 'vi' is defined twice",
    ),
    "axis outside": Mistake(
        "for i in range(n):\n    vi = T.axis.spatial(n, i)",
        "T.axis.spatial(n, i)",
        "belongs directly in a block",
        "T.block",
    ),
    "init without reduction": Mistake(
        'for i in range(n):\n    with T.block("b"):\n        vi = T.axis.spatial(n, i)\n'
        "        with T.init():\n            c[vi, 0] = 0.0",
        'T.block("b")',
        "has an init but no reduce axis",
        "T.axis.reduce",
    ),
    "grid": Mistake(
        "for i, j in T.grid(n, 4, 4):\n    pass", "i, j", "3 loop variables, got 2 names"
    ),
    "loop over something": Mistake("for i in a:\n    pass", "a", "can't loop over 'a'", "T.grid"),
    "return": Mistake("return a", "return a", "a prim_func returns nothing", "store into"),
    "unknown intrinsic": Mistake(
        "c[0, 0] = T.expp(a[0, 0])", "T.expp", "is no expression of the language", "T.exp"
    ),
    "allocation by TVM's name": Mistake(
        't = T.alloc_buffer((4,), "float32")', "T.alloc_buffer", "no expression", "t = T.alloc(("
    ),
    "arity": Mistake("c[0, 0] = T.exp(1.0, 2.0)", "T.exp(1.0, 2.0)", "takes 1 argument, got 2"),
    "op of R": Mistake("c[0, 0] = R.exp(a)", "R.exp(a)", "is for functions, this is a prim_func"),
    "buffer as a scalar": Mistake("c[0, 0] = a", "a", "expected a scalar, got the buffer a"),
    "unused value": Mistake("a[0, 0] + 2.0", "a[0, 0] + 2.0", "the value is not used", "store it"),
    "try": Mistake("try:\n    pass\nexcept E:\n    pass", "try:", "try can't be used here"),
    "global": Mistake("global a", "global a", "global can't be used here", "only reads"),
    "lambda": Mistake("c[0, 0] = (lambda: 1.0)()", "lambda: 1.0", "lambda can't be used here"),
    "break": Mistake("break", "break", "break stands in no loop"),
    "continue in a branch": Mistake(
        "if c[0, 0] > 1.0:\n    continue", "continue", "continue stands in no loop"
    ),
    "behind a break": Mistake(
        "for i in range(3):\n    break\n    c[0, 0] = 1.0", "c[0, 0] = 1.0", "nothing gets here"
    ),
    "break of a grid": Mistake(
        "for i, j in T.grid(3, 3):\n    break",
        "break",
        "break can't leave this loop: T.grid is several loops",
        "T.serial, range and while",
    ),
    "break of threads": Mistake(
        "for i in T.parallel(3):\n    break",
        "break",
        "its iterations don't follow one another",
        "T.serial, range and while",
    ),
    "break of a block": Mistake(
        'for i in range(3):\n    with T.block("b"):\n        break',
        "break",
        "break leaves a block in its midst",
        "write the loop into the block",
    ),
    "import": Mistake("import os", "import os", "import can't be used here", "above the func"),
    "del": Mistake("del a", "del a", "del can't be used here", "leave it out"),
    "match": Mistake(
        "match 1:\n    case 1:\n        pass", "match 1:", "match can't be used here", "if and elif"
    ),
    "raise": Mistake("raise E", "raise E", "raise can't be used here", "assert condition"),
    "comprehension": Mistake("y = [i for i in x]", "[i for i in x]", "a comprehension can't"),
    "with something": Mistake(
        "with T.blok():\n    pass", "T.blok()", "has no meaning in a prim_func", "T.block"
    ),
}


@pytest.mark.parametrize("name", PRIM_MISTAKES)
def test_in_a_prim_func(name: str) -> None:
    mistake = PRIM_MISTAKES[name]
    check(PRIM + indent(mistake.body, "    ") + "\n", mistake)


GRAPH = """\
n = dim("n")
m = dim("m")


@script.prim_func
def kernel(a: f32[Buffer, n, 4], c: f32[Buffer, n, 4]) -> None:
    for i, j in T.grid(n, 4):
        c[i, j] = a[i, j]


@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 5, 6], s: f32[Tensor, ()]) -> f32[Tensor, n, 4]:
"""

GRAPH_MISTAKES = {
    "unknown name": Mistake("return y", "y", "unknown name 'y'"),
    "unknown op": Mistake(
        "return R.nn.rellu(x)", "R.nn.rellu(x)", "there is no operator 'nn.rellu'", "did you mean"
    ),
    "arity": Mistake(
        "return R.nn.relu(x, x)", "R.nn.relu(x, x)", "takes 1 argument, got 2", "nn.relu("
    ),
    "missing argument": Mistake("return R.add(x)", "R.add(x)", "needs", "add("),
    "unknown argument": Mistake(
        "return R.nn.relu(x, scale=2)", "R.nn.relu(x, scale=2)", "no parameter 'scale'"
    ),
    "shapes": Mistake("return R.matmul(x, w)", "R.matmul(x, w)", "matmul"),
    "shapes with an operator": Mistake("return x + w", "x + w", "add"),
    "call of a prim func": Mistake(
        "return kernel(x)", "kernel(x)", "'kernel' is a prim_func", "R.call_tir"
    ),
    "call_tir of too few": Mistake(
        "return R.call_tir(kernel, (), out=f32[Tensor, n, 4])",
        "R.call_tir(kernel, (), out=f32[Tensor, n, 4])",
        "takes 2 buffers, got 0 inputs and 1 outputs",
        "its buffers: a, c",
    ),
    "call_tir of a wrong shape": Mistake(
        "return R.call_tir(kernel, (w,), out=f32[Tensor, n, 4])",
        "R.call_tir(kernel, (w,), out=f32[Tensor, n, 4])",
        "kernel: ",
    ),
    "undefined symbol": Mistake(
        "y = R.call_tir(kernel, (x,), out=f32[Tensor, m, 4])\nreturn x",
        "m",
        "",
    ),
    "missing return": Mistake("y = R.nn.relu(x)", "y = R.nn.relu(x)", "returns nothing", "return"),
    "return without value": Mistake("return", "return", "a function returns a value"),
    "after return": Mistake("return x\ny = x", "y = x", "nothing runs after a return"),
    "assign to an element": Mistake(
        "x[0] = 1.0\nreturn x", "x[0]", "can't assign to 'x[0]'", "make a new one"
    ),
    "index a tensor": Mistake("return x[0]", "x[0]", "it is not known to be there", "min=1"),
    "field of a tuple": Mistake("t = (x, w)\nreturn t[2]", "2", "has 2 fields, got index 2"),
    "unpack": Mistake("a, b = (x, x, x)\nreturn a", "a, b", "2 names for 3 values"),
    "unpack a tensor": Mistake("a, b = x\nreturn a", "x", "is no tuple"),
    "one branch": Mistake(
        "if R.greater(s, 0.0):\n    y = x\nreturn y",
        "y",
        "'y' is only assigned in one branch",
        "assign it in both",
    ),
    "condition": Mistake("if x:\n    y = x\nelse:\n    y = x\nreturn y", "x", "scalar bool"),
    "return in one branch": Mistake(
        "if R.greater(s, 0.0):\n    return x\ny = x",
        "if R.greater(s, 0.0):",
        "a return in one branch only",
    ),
    "loop over nothing": Mistake(
        "while R.greater(s, 0.0):\n    y = x\nreturn x",
        "while R.greater(s, 0.0):",
        "changes nothing",
    ),
    "unknown constant": Mistake(
        'return R.add(x, R.const("w0"))', '"w0"', "there is no constant 'w0'", "parse(text"
    ),
    "name of T": Mistake("return T.exp(x)", "T.exp(x)", "is for prim_funcs, this is a function"),
    "lambda": Mistake("f = lambda v: v\nreturn x", "lambda v: v", "lambda can't be used", "nested"),
    "for": Mistake("for v in x:\n    y = v\nreturn x", "x", "nothing that a loop goes through"),
    "torch": Mistake("return torch.relu(x)", "torch", "unknown name 'torch'", "no functions of pa"),
    "named": Mistake("return (y := x)", "y := x", "the := operator can't be", "a line of its own"),
    "method": Mistake("return x.view(8, -1)", "x.view", "has no 'view'", "R.reshape(x, (2, -1))"),
    "await": Mistake("y = await x\nreturn y", "await x", "await can't be used here"),
    "dims with floats": Mistake(
        "return R.reshape(x, (n * 0.5, 8))", "n * 0.5", "a dim must be an integer expression"
    ),
    "nested plain function": Mistake(
        "def g(v):\n    return v\nreturn g(x)",
        "g",
        "'g' is a plain nested function",
        "R.while_loop",
    ),
}


@pytest.mark.parametrize("name", GRAPH_MISTAKES)
def test_in_a_function(name: str) -> None:
    mistake = GRAPH_MISTAKES[name]
    check(GRAPH + indent(mistake.body, "    ") + "\n", mistake)


SIGNATURES = {
    "no annotation": Mistake(
        "@script.function\ndef f(x):\n    return x", "x", "'x' has no annotation", "f32[Tensor"
    ),
    "buffer in a function": Mistake(
        "@script.function\ndef f(x: f32[Buffer, 4]) -> f32[Tensor, 4]:\n    return x",
        "f32[Buffer, 4]",
        "takes tensors, got a Buffer",
    ),
    "tensor in a prim func": Mistake(
        "@script.prim_func\ndef f(x: f32[Tensor, 4]) -> None:\n    pass",
        "f32[Tensor, 4]",
        "is no parameter of a prim_func",
        "f32[Buffer",
    ),
    "unknown dtype": Mistake(
        "@script.function\ndef f(x: f31[Tensor, 4]) -> f32[Tensor, 4]:\n    return x",
        "f31",
        "unknown name 'f31'",
        "did you mean",
    ),
    "float dim": Mistake(
        "@script.function\ndef f(x: f32[Tensor, 1.5]) -> f32[Tensor, 4]:\n    return x",
        "f32[Tensor, 1.5]",
        "a dim must be an integer",
    ),
    "float extent": Mistake(
        "@script.prim_func\ndef f(x: f32[Buffer, 1.5]) -> None:\n    pass",
        "1.5",
        "a dim must be an integer",
    ),
    "undeclared symbol": Mistake(
        "@script.function\ndef f(x: f32[Tensor, k]) -> f32[Tensor, k]:\n    return x",
        "k",
        "unknown name 'k'",
    ),
    "default": Mistake(
        "@script.function\ndef f(x: f32[Tensor, 4] = 1) -> f32[Tensor, 4]:\n    return x",
        "1",
        "no defaults",
    ),
    "prim func that returns": Mistake(
        "@script.prim_func\ndef f(x: f32[Buffer, 4]) -> f32[Tensor, 4]:\n    pass",
        "f32[Tensor, 4]",
        "returns nothing",
        "-> None",
    ),
    "decorator": Mistake(
        "@script.kernel\ndef f() -> None:\n    pass", "script.kernel", "unknown decorator"
    ),
    "defined twice": Mistake(
        "@script.prim_func\ndef f() -> None:\n    pass\n"
        "@script.prim_func\ndef f() -> None:\n    pass",
        "def f() -> None:",
        "'f' is defined twice",
    ),
    "other facts": Mistake(
        'n = dim("n")\nk = dim("n", min=1)', 'dim("n", min=1)', "declared twice, with other facts"
    ),
    "not Python": Mistake("def f(:\n    pass", ":", "not Python"),
    "statement": Mistake("print(1)", "print(1)", "holds symbols and decorated functions"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_around_functions(name: str) -> None:
    check(SIGNATURES[name].body + "\n", SIGNATURES[name])


def marked(line: str, part: str, error: UnityError) -> None:
    """The error marks a part of the one line of this file that holds the text."""
    assert error.span is not None
    assert error.span.file == __file__
    with open(__file__, encoding="utf-8") as file:
        text = file.read().splitlines()[error.span.line - 1]
    assert line in text
    assert text[error.span.column : error.span.end_column] == part


def test_a_decorated_function_is_wrong_where_it_is_written() -> None:
    with pytest.raises(UnityError) as caught:

        @script.prim_func
        def kernel(c: f32[Buffer, 4]) -> None:
            c[0, 1] = 1.0  # two indices

    marked("# two indices", "0, 1", caught.value)


def test_a_declared_result_must_hold() -> None:
    with pytest.raises(
        UnityError, match=r"returns f32\[Tensor, n, 4\], declared is f32\[Tensor, 4"
    ):

        @script.function
        def f(x: f32[Tensor, n, 4]) -> f32[Tensor, 4, 4]:
            return R.nn.relu(x)


def test_a_declared_binding_must_hold() -> None:
    with pytest.raises(UnityError, match=r"declared is f32\[Tensor, 7, 4\]") as caught:

        @script.function
        def f(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
            y: f32[Tensor, 7, 4] = R.nn.relu(x)  # declared
            return y

    marked("# declared", "R.nn.relu(x)", caught.value)


def test_a_plain_function_can_not_be_called() -> None:
    def double(v: Tensor) -> Tensor:
        return v + v

    with pytest.raises(UnityError, match="'double' is a plain Python function") as caught:

        @script.function
        def f(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return double(x)

    assert "decorate it" in (caught.value.hint or "")
    marked("return double(x)", "double(x)", caught.value)


def test_captured_values_of_other_types_are_refused() -> None:
    table = cast("float", {"a": 1})
    text = np.array(["a"])

    with pytest.raises(UnityError, match="a dict") as caught:

        @script.function
        def f(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.add(x, table)  # a dict

    marked("# a dict", "R.add(x, table)", caught.value)
    with pytest.raises(UnityError, match="captured array: unknown dtype"):

        @script.function
        def g(x: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.add(x, text)


def test_an_array_can_not_be_read_in_a_prim_func() -> None:
    text = "@script.prim_func\ndef f(c: f32[Buffer, 4]) -> None:\n    c[0] = weights[0]\n"
    with pytest.raises(UnityError, match="a captured array can't be read") as caught:
        script.parse(text, names={"weights": np.ones(4, np.float32)})
    assert "as a Buffer parameter" in (caught.value.hint or "")


def test_async_functions_are_refused() -> None:
    source = dedent(
        """
        @script.function
        async def f(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            return x
        """
    )
    with pytest.raises(UnityError, match="holds symbols and decorated functions"):
        script.parse(source)


def test_names_of_the_language_do_not_run() -> None:
    with pytest.raises(UnityError, match="can't be run by Python") as caught:
        R.nn.relu(1.0)
    assert "@script.function" in (caught.value.hint or "")
    with pytest.raises(UnityError, match="can't be run by Python"):
        T.exp(1.0)


def test_source_that_is_not_known() -> None:
    names: dict[str, object] = {"script": script, "f32": f32, "Buffer": Buffer}
    text = "@script.prim_func\ndef f(c: f32[Buffer, 4]) -> None:\n    pass\n"
    with pytest.raises(UnityError, match="source text of 'f' is not available") as caught:
        exec(text, names)
    assert "script.parse" in (caught.value.hint or "")


def test_decorating_something_else() -> None:
    with pytest.raises(UnityError, match="takes a plain function"):
        script.function(len)


@pytest.mark.parametrize(
    ("body", "said", "hint"),
    [
        (
            "return x * math.sqrt(n)",
            "'math.sqrt' can't compute with n, which is known when the program runs",
            "the operator is R.sqrt; float(n) is a number that it takes",
        ),
        (
            "return main(x)",
            "'main' is called before it is known what it returns",
            "declare it: def main(...) -> f32[Tensor, n]:",
        ),
    ],
)
def test_in_a_decorated_function(body: str, said: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import math\n"
        "from unity import script\n"
        "from unity.script import R, Tensor, dim, f32\n\n"
        'n = dim("n")\n\n\n'
        f"@script.function\ndef main(x: f32[Tensor, n]):\n    {body}\n"
    )
    with pytest.raises(UnityError) as caught:
        run_path(str(file))
    assert (caught.value.message, caught.value.hint) == (said, hint)
    assert caught.value.span is not None
