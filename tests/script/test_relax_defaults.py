"""Operators in tvmscript mode have TVM's own parameters, order, defaults and results.

`relax_defaults.py` runs all of them and stores how each goes; here all signatures are compared, and
a part of the calls, where TVM is installed.
"""

from __future__ import annotations

import json

import pytest

from tests.script.relax_defaults import MORE, RESULTS, call_of, compared, operators, ours, plain
from unity.arguments import Signature
from unity.errors import UnityError
from unity.op.table import OPS
from unity.script import tvmscript
from unity.script.tvmscript.relax import RELAX

STORED: dict[str, str] = json.loads(RESULTS.read_text())
EXPLAINED = {
    "nn.adaptive_avg_pool1d": "TVM's own default is refused by TVM",
    "ewise_fma": "TVM has no kernel of it",
    "nn.pixel_shuffle": "likewise",
    "nn.attention_var_len": "likewise",
    "print": "gives nothing to compare, in an impure function",
    "assert_op": "likewise",
}
"""Calls whose results are not the same, and why."""


def test_all_that_differs_is_explained() -> None:
    assert {name for name, result in STORED.items() if result != "same"} == set(EXPLAINED)
    assert {row.signature.name.removeprefix("R.") for row in RELAX} <= set(OPS)


def test_signatures_are_those_of_tvm() -> None:
    pytest.importorskip("tvm")
    for name, function in operators().items():
        theirs = plain(Signature.of(function))
        assert ours(name) == theirs, name


@pytest.mark.rotated(1)
@pytest.mark.parametrize("name", sorted({*STORED} - {*EXPLAINED}))
def test_a_call_by_defaults_gives_what_tvm_gives(name: str) -> None:
    pytest.importorskip("tvm")
    call = MORE[name] if name in MORE else (name, call_of(name))
    assert compared(*call) == "same"


REFUSED = {
    "R.nn.batch_norm(x, c, c, c, c, axis=1, training=None)": "'training' must be True or False",
    'R.topk(x, 1, ret_type="either")': '\'ret_type\' is "both", "values" or "indices"',
    "R.matmul(x, x, algorithm=None)": r"R\.matmul has no parameter 'algorithm'",
    "R.ones((2,))": "R.ones needs 'dtype'",
    "R.nn.group_norm(x, c, c, 2, 1, [0, 2])": r"no axes=\[0, 2\]",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_unity_means_otherwise_is_refused_where_it_stands(call: str) -> None:
    text = (
        '@R.function\ndef main(x: R.Tensor((2, 4, 4), "float32"), c: R.Tensor((4,), "float32")):\n'
        f"    return {call}\n"
    )
    with pytest.raises(UnityError, match=REFUSED[call]) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None
    assert caught.value.span.line == 3
