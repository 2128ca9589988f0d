"""Names and numbers of calls that can't be: what they are called here, what a dtype can hold."""

from __future__ import annotations

import pytest

from unity.errors import UnityError
from unity.op.call import ELSEWHERE
from unity.op.table import OPS
from unity.script import parse

PROGRAM = """
@script.function
def main(x: f16[Tensor, 4, 2]) -> f16[Tensor, ...]:
    return {}
"""


def test_names_of_other_languages_are_told() -> None:
    assert ELSEWHERE.keys().isdisjoint(OPS)
    assert set(ELSEWHERE.values()) <= set(OPS)
    with pytest.raises(UnityError, match=r"(?s)no operator 'transpose'.*called permute_dims here"):
        parse(PROGRAM.format("R.transpose(x)"))


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("R.output(x)", "leave it out: what a dataflow block binds is seen behind it"),
        ("R.func_attr({'a': 1})", "@script.function(attrs="),
        ("R.func_ret_struct_info(x)", "annotate what the function returns"),
        ("R.emit(x)", "assign the value to a name"),
    ],
)
def test_words_of_tvmscript_are_told(call: str, hint: str) -> None:
    with pytest.raises(UnityError, match="is a word of TVMScript") as told:
        parse(PROGRAM.format(call))
    assert hint in str(told.value.hint)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [("131072.0", "float16"), ("[1.0, -1e6]", "float16"), ("1e39", "float32"), ("1e20", "int64")],
)
def test_a_number_beyond_its_dtype_is_refused(value: str, dtype: str) -> None:
    with pytest.raises(
        UnityError, match=r"(?s)4:.*R\.const: (.* beyond what|Python int too large)"
    ):
        parse(PROGRAM.format(f'R.const({value}, "{dtype}")'))


@pytest.mark.parametrize(("value", "dtype"), [("65504.0", "float16"), ("1e-30", "float16")])
def test_what_rounding_takes_near_is_taken(value: str, dtype: str) -> None:
    assert parse(PROGRAM.format(f'R.add(x, R.const({value}, "{dtype}"))'))


def test_what_a_c_function_returns_is_to_be_said() -> None:
    text = """
@script.prim_func
def k(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    for i in range(8):
        y[i] = T.call_extern("maths.cbrtf", x[i])
"""
    with pytest.raises(UnityError, match=r'(?s)holds float32.*call_extern.*dtype="float32"'):
        parse(text)
