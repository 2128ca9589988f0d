"""Regions of engines: on random graphs they are connected, convex, and cover what was labelled."""

from __future__ import annotations

from random import Random

import pytest

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Var
from unity.ir.types import TensorType
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
