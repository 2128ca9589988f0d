"""Regions of engines: on random graphs they are connected, convex, and cover what was labelled."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from unity.codegen.engine import InterpreterEngine
from unity.interpreter import interpret
from unity.ir.dims import dim
from unity.ir.dtype import FLOAT32
from unity.ir.graph import ShapeValue, Tuple, Var
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.well_formed.verify import verify
from unity.op.builder import GraphBuilder
from unity.script import parse
from unity.transform import Context
from unity.transform.graph.resolve import ENGINES, Resolve, policy_of, register_engine
from unity.transform.graph.resolve.regions import regions


def random_graph(rng: Random) -> tuple[list[Var], dict[Var, list[Var]], dict[Var, str]]:
    order = [Var(f"v{i}", TensorType((1,), FLOAT32)) for i in range(rng.randint(1, 30))]
    operands = {v: rng.sample(order[:i], min(i, rng.randint(0, 3))) for i, v in enumerate(order)}
    label = {v: rng.choice("ab") for v in order if rng.random() < 0.7}
    return order, operands, label


@pytest.mark.parametrize("seed", range(200))
def test_regions_are_convex_and_of_one_label(seed: int) -> None:
    order, operands, label = random_graph(Random(seed))
    found = regions(order, operands, label)
    flat = [v for group in found for v in group]
    assert sorted(v.name for v in flat) == sorted(v.name for v in label)
    group_of = {v: i for i, group in enumerate(found) for v in group}
    for group in found:
        assert len({label[v] for v in group}) == 1
    assert acyclic(order, operands, group_of)


def acyclic(order: list[Var], operands: dict[Var, list[Var]], group_of: dict[Var, int]) -> bool:
    """Whether the graph with each group as one node has an order."""
    node = {v: f"group {group_of[v]}" if v in group_of else v.name for v in order}
    needs: dict[str, set[str]] = {n: set() for n in node.values()}
    for v in order:
        needs[node[v]] |= {node[o] for o in operands[v]} - {node[v]}
    while needs:
        ready = [n for n, wanted in needs.items() if not wanted & needs.keys()]
        if not ready:
            return False
        for n in ready:
            del needs[n]
    return True


def test_neighbours_are_joined_where_nothing_lies_between() -> None:
    a, b, c, d = (Var(n, TensorType((1,), FLOAT32)) for n in "abcd")
    chain = {a: [], b: [a], c: [b], d: [c]}
    assert regions([a, b, c, d], chain, dict.fromkeys((a, b, c, d), "e")) == [[a, b, c, d]]
    diamond = {a: [], b: [a], c: [a], d: [b, c]}
    assert regions([a, b, c, d], diamond, dict.fromkeys((a, b, d), "e")) == [[a, b], [d]]


@pytest.fixture
def interpreter() -> Iterator[None]:
    before = dict(ENGINES)
    register_engine(InterpreterEngine())
    yield
    ENGINES.clear()
    ENGINES.update(before)


@pytest.mark.usefixtures("interpreter")
def test_a_check_stands_between_what_it_is_given_and_what_reads_it() -> None:
    """`a` and `y` have no variable of the dataflow between them, and yet can't be one region."""
    module = parse("""
n = dim("n")
m = dim("m")
@script.function
def main(x: f32[Tensor, n, 4], z: f32[Tensor, m, 4]) -> f32[Tensor, n, 4]:
    with R.dataflow():
        a = R.exp(x)
        checked = R.match_cast(a, f32[Tensor, m, 4])
        d = R.nn.relu(R.add(z, checked))
        back = R.match_cast(d, f32[Tensor, n, 4])
        y = R.add(a, back)
    return y
""")
    resolved = Resolve(policy_of("engine:interpreter"))(module, Context())
    verify(resolved)
    assert list(resolved.engine_functions()) == ["interpreter_a", "interpreter_d", "interpreter_y"]


def checked_program(rng: Random, size: int) -> IRModule:
    """Tensors of ``(n, 4)`` that are checked to be ``(m, 4)`` and back, and sizes found in data."""
    builder = GraphBuilder()
    sizes = [dim("n"), dim("m")]
    params = [
        builder.new_var(p, TensorType((s, 4), FLOAT32)) for p, s in zip("xz", sizes, strict=True)
    ]
    values = [*params]
    with builder.dataflow_block():
        for _ in range(size):
            x, y = rng.choice(values), rng.choice(values)
            match rng.randrange(6):
                case 0 | 1:
                    values.append(builder.op(rng.choice(("tanh", "abs")), x))
                case 2 if x.type == y.type:
                    values.append(builder.op("add", x, y))
                case 3 | 4:
                    values.append(
                        builder.match_cast(x, TensorType((rng.choice(sizes), 4), FLOAT32))
                    )
                case 5 if len(sizes) < 5:
                    sizes.append(dim(f"k{len(sizes)}"))
                    cast = builder.match_cast(x, TensorType((sizes[-1], 4), FLOAT32))
                    found = builder.op("ones", ShapeValue((sizes[-1], 4)), dtype="float32")
                    row = builder.op("sum", found, axis=0)
                    values += [cast, found, builder.op("add", rng.choice(values), row)]
                case _:
                    pass
        results = rng.sample(values, min(3, len(values)))
    return IRModule({"main": builder.finish(Tuple(tuple(results)), params)})


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("seed", range(40))
def test_regions_around_checks_keep_the_program_in_order(seed: int) -> None:
    rng = Random(seed)
    module = checked_program(rng, 24)
    share = rng.choice((0.6, 1.0))
    step = Resolve(policy_of(lambda site, candidates: (
        "engine:interpreter" if rng.random() < share else "tir"
    )))  # fmt: skip
    resolved = step(module, Context())
    verify(resolved)
    numbers = np.random.default_rng(seed)
    args = [numbers.standard_normal((3, 4)).astype(np.float32) for _ in "xz"]
    wanted, got = interpret(module, "main", args), interpret(resolved, "main", args)
    assert isinstance(wanted, tuple)
    assert isinstance(got, tuple)
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))
