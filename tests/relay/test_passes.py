"""Relay's passes by name: a counterpart, a refusal, or the script's own."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from unity import relay
from unity.errors import UnityError
from unity.relay import transform, tvm
from unity.relay.pass_context import OPTIONAL, PassContext
from unity.relay.transform import COUNTERPARTS, REFUSED
from unity.transform import pipeline


def _module(body: Any = None) -> relay.IRModule:
    x = relay.var("x", shape=(2, 3))
    return tvm.IRModule.from_expr(relay.exp(x) if body is None else body(x))


def test_passes_with_a_counterpart_leave_the_module_to_the_compiler() -> None:
    mod = _module()
    for name, ours in COUNTERPARTS.items():
        if name not in ("ToMixedPrecision", "InferType", "ConvertLayout"):
            each = getattr(relay.transform, name)()
            assert each(mod) is mod
            assert each.counterpart == ours
    seq = relay.transform.Sequential([relay.transform.InferType(), relay.transform.FuseOps(2)])
    assert seq(mod) is mod


def test_passes_that_leave_the_module_say_so(caplog: pytest.LogCaptureFixture) -> None:
    transform._TOLD.discard("DefuseOps")
    with caplog.at_level(logging.WARNING, "unity"):
        relay.transform.DefuseOps()(_module())
        relay.transform.DefuseOps()(_module())
    (record,) = caplog.records
    assert "relay.transform.DefuseOps leaves the module as it is" in record.message


def test_the_counterparts_that_are_passes_are_there() -> None:
    names = set(pipeline("cpu").names)
    for ours in OPTIONAL.values():
        assert set(ours) <= names
    for name, said in COUNTERPARTS.items():
        words = {w.strip(",") for w in said.split()}
        assert words & names or not said[:1].isupper(), name


def test_types_are_checked() -> None:
    wrong = _module(lambda x: relay.add(x, relay.var("y", shape=(4, 5))))
    with pytest.raises(UnityError, match="add"):
        relay.transform.InferType()(wrong)


def test_mixed_precision_is_that_of_the_compiler() -> None:
    found = relay.transform.ToMixedPrecision("float16")(_module())
    assert found.precision == "f16"
    with pytest.raises(UnityError, match="float16 is known"):
        relay.transform.ToMixedPrecision("bfloat16")


def test_disabled_passes_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "unity"):
        context = tvm.transform.PassContext(
            opt_level=3, disabled_pass=["FuseOps", "Legalise"], config={"tir.unroll": 1}
        )
    assert "tir.unroll say nothing here" in caplog.text
    assert "no pass does what Legalise did" in caplog.text
    with context:
        assert PassContext.current() is context
        names = PassContext.current().changed(pipeline("cpu")).names
    assert "FuseOps" not in names
    assert "LegalizeOps" in names
    assert PassContext.current().disabled == ()
    with relay.build_config(opt_level=3):
        assert PassContext.current().opt_level == 3


def test_others_are_refused_by_name() -> None:
    for name in REFUSED:
        with pytest.raises(UnityError, match=f"no pass does what {name} did"):
            getattr(relay.transform, name)
    with pytest.raises(AttributeError, match="MakeCoffee"):
        relay.transform.MakeCoffee()


def test_passes_of_a_script() -> None:
    class Doubling:
        def transform_function(self, func: Any, mod: Any, ctx: Any) -> Any:
            return relay.Function(func.params, func.body + func.body)

    def with_attribute(mod: Any, ctx: Any) -> Any:
        return relay.IRModule({"main": mod["main"].with_attr("Inline", 1)})

    doubled = relay.transform.function_pass(opt_level=1)(Doubling)()
    marked = relay.transform.module_pass(with_attribute, opt_level=1, name="marked")
    found = relay.transform.Sequential([doubled, marked])(_module())
    assert "add(%0, %0)" in str(found)
    assert found["main"].attrs == {"Inline": 1}
