"""What users say about call sites is done, or refused with a word on what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import unity
from tests.codegen.engine.stub import StubEngine
from unity.errors import UnityError
from unity.runtime.explanation import Explanation
from unity.script import parse
from unity.transform import Context
from unity.transform.graph.resolve import ENGINES, OpSite, Resolve, ResolveOption, policy_of
from unity.transform.graph.resolve.resolve import NOT_ASKED
from unity.transform.pattern import Pattern, any_, op

PROGRAM = """
@script.function
def main(x: f32[Tensor, 8, 32], w: f32[Tensor, 32, 32]) -> f32[Tensor, 8, 32]:
    with R.dataflow():
        hidden = R.matmul(x, w)
        act = R.nn.relu(hidden)
        out = R.matmul(act, w)
    return out
"""


@pytest.mark.parametrize(
    ("resolve", "message"),
    [
        ({"main/hiden": "tir"}, r"names 'main/hiden', which is neither .*\n.*mean main/hidden"),
        ({"matmull": "library:openblas"}, r"neither a call site nor an op\n.*matmul"),
        ({"relu": "tir", "*": "static"}, r"names 'relu'"),
        ({"*": "measure", "main/hiden": "tir"}, r"names 'main/hiden'"),
        ({"matmul": "library:opnblas"}, r"no library function 'opnblas' is .*\n.*openblas.gemm"),
        ("library:openblas.gem", r"no library function 'openblas.gem'"),
        ({"*": "engine:onnxruntme"}, r"no engine 'onnxruntme' is registered\n.*onnxruntime"),
        ("fast", r"no implementation 'fast'"),
        ({"out": "static"}, r"no implementation 'static'"),
        (lambda site, candidates: "engine:none", r"main/hidden: the function chose 'engine:none'"),
    ],
)
def test_what_fits_nothing_is_refused(resolve: ResolveOption, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(PROGRAM), resolve=resolve)


@pytest.mark.parametrize(
    ("choose", "cause"),
    [(lambda site: "tir", TypeError), (lambda site, found: {}[site.name], KeyError)],
)
def test_a_function_that_fails_is_told_with_the_call(choose: Any, cause: type[Exception]) -> None:
    with pytest.raises(
        UnityError, match=rf"main/hidden: the function given .*{cause.__name__}"
    ) as caught:
        unity.compile(parse(PROGRAM), resolve=choose)
    assert isinstance(caught.value.__cause__, cause)


def test_a_pattern_may_be_a_key() -> None:
    said: dict[Pattern, str] = {op("matmul", any_("x"), any_("w")): "library:openblas"}
    exe = unity.compile(parse(PROGRAM), resolve=said)
    assert exe.explain()["hidden"].choice == "library:openblas.gemm"


def test_a_call_that_is_not_there_is_told_with_those_like_it() -> None:
    table = unity.compile(parse(PROGRAM)).explain()
    with pytest.raises(KeyError, match=r"(?s)no call site 'hiden'.*did you mean hidden"):
        table["hiden"]


TURNED = """
@script.function
def main(x: f32[Tensor, 8, 32], w: f32[Tensor, 16, 32]) -> f32[Tensor, 8, 16]:
    with R.dataflow():
        turned = R.permute_dims(w, (1, 0))
        out = R.matmul(x, turned)
        act = R.nn.relu(out)
    return act
"""


def test_what_a_library_call_takes_in_is_counted_as_its_own() -> None:
    exe = unity.compile(parse(TURNED), resolve={"matmul": "library:openblas"})
    table = exe.explain()
    assert table.counts() == {"library:openblas.gemm": 2, "tir": 1}
    assert table["turned"].reason == "part of the library call out"
    assert "3 call sites (tir with overrides)" in table.summary()


def test_one_implementation_for_all_is_the_policy_that_is_told() -> None:
    table = unity.compile(parse(TURNED), resolve="library:openblas").explain()
    assert "3 call sites (library:openblas)" in table.summary()


def test_ops_and_stars_may_fit_nothing() -> None:
    exe = unity.compile(parse(PROGRAM), resolve={"nn.conv2d": "library:openblas", "conv*": "tir"})
    assert exe.explain().counts() == {"tir": 3}


def test_names_ops_and_stars_are_taken_in_order() -> None:
    said = {"main/h*": "tir", "matmul": "library:openblas"}
    table = unity.compile(parse(PROGRAM), resolve=said).explain()
    assert [row.choice for row in table] == ["tir", "tir", "library:openblas.gemm"]


def test_measuring_keeps_to_what_was_said_and_gives_its_own_reason_for_the_rest(
    tmp_path: Path,
) -> None:
    said = {"*": "measure", "hidden": "library:openblas"}
    table = unity.compile(parse(PROGRAM), resolve=said, cache=tmp_path).explain()
    assert table["hidden"].choice == "library:openblas.gemm"
    assert table["hidden"].reason == "override 'hidden'"
    assert "measured" in table["out"].reason or "ran fastest by" in table["out"].reason


def test_engines_are_asked_only_if_they_may_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Asked(StubEngine):
        def supports(self, site: OpSite) -> str | None:
            asked.append(str(site.call.callee))
            return "it is only asked"

    monkeypatch.setitem(ENGINES, "asked", Asked("asked"))
    module = parse(PROGRAM)
    quiet: list[ResolveOption | None] = [None, "tir", "library:openblas", {"matmul": "tir"}]
    for policy in quiet:
        Resolve(policy_of(policy))(module, ctx := Context())
        assert not asked, policy
        notes = Explanation.from_json(ctx.reports["resolution"]).notes
        assert (NOT_ASKED in notes) == (policy in (None, "tir"))
    asking: list[ResolveOption] = ["static", {"relu": "engine:asked"}, lambda site, found: found[0]]
    for policy in asking:
        Resolve(policy_of(policy), partial=True)(module, Context())
        assert asked, policy
        asked.clear()
