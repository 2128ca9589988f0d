"""The search of one kernel: what it proposes, when it is done, and what it says is fastest."""

from __future__ import annotations

from functools import partial
from itertools import islice
from random import Random

import numpy as np
import pytest

from unity.transform.schedule.schedule import Schedule
from unity.tuning.cost import PriorModel
from unity.tuning.records import Records, Trial
from unity.tuning.scheduler import is_tired
from unity.tuning.search import Proposal, Search, strategy
from unity.tuning.session import Session
from unity.tuning.spaces import Point, ProgramSpace, multi_level_tiles
from unity.tuning.spaces.by_program import decisions_of
from unity.tuning.workers import Measured
from unity.tuning.workers.machine_key import key_of_target

from .kernels import MATMUL, ROWS, rows_at_once, tasks


def test_spaces_that_are_not_given_take_no_place_among_the_fastest() -> None:
    """Of earlier sessions records tell points, and only who has the space can lay them out."""
    (task,) = tasks(MATMUL)
    records = Records()
    for k in range(3):
        told = (task.identity, key_of_target(task.target), task.sizes, "mine", f"[{k}]")
        records.add(Trial(*told, 0.3, 1.0, (), ""))
    (search,) = Session([task], records, PriorModel()).searches
    (proposal,) = search.propose(1)
    search.tell(proposal, Measured(0.8, 1.0))
    assert [f.proposal for f in search.fastest(2)] == [proposal]


@pytest.mark.parametrize(
    ("ratios", "tired"),
    [
        ([3.0 - k / 100 for k in range(150)], False),
        ([2.0] * 150, True),
        ([float("inf")] * 150, True),
        ([2.0] * 20, False),
        ([0.9, *[1.1] * 120], True),
    ],
    ids=["better and better", "no better", "nothing runs", "few", "the default is beaten at once"],
)
def test_a_search_is_tired_when_what_it_finds_gets_no_better(
    ratios: list[float], tired: bool
) -> None:
    """Also where all of it is behind the default: that may still be reached."""
    (task,) = tasks(MATMUL)
    spaces = [ProgramSpace(task.func, task.target, multi_level_tiles)]
    search = Search(task, lambda: spaces, partial(strategy, "random"), PriorModel(), Random(0))
    proposal = Proposal(Point("a", "{}"), Schedule(task.func), "", np.zeros(1, np.float32))
    for ratio in ratios:
        search.tell(proposal, Measured(ratio if ratio < 9 else None, 1.0))
    assert is_tired(search) is tired


def test_nothing_is_measured_twice() -> None:
    """Neither what a space begins with: it is not drawn again beside it, nor later."""
    (task,) = tasks(ROWS.replace("R.nn.softmax", "R.nn.relu"), n=4)
    spaces = [ProgramSpace(task.func, task.target, multi_level_tiles)]
    search = Search(task, lambda: spaces, partial(strategy, "random"), PriorModel(), Random(0))
    points: list[Point] = []
    while proposals := search.propose(8):
        for proposal in proposals:
            points.append(proposal.point)
            search.tell(proposal, Measured(2.0, 1.0))
    assert search.exhausted
    assert len(points) == len(set(points)) > 1


@pytest.mark.parametrize("method", ["evolution", "annealing", "random"])
def test_a_strategy_leaves_a_point_that_has_no_neighbours(method: str) -> None:
    (task,) = tasks(MATMUL)
    spaces = [ProgramSpace(task.func, task.target, p) for p in (rows_at_once, multi_level_tiles)]
    only = spaces[0].first(Random(0))
    assert only is not None
    assert spaces[0].mutate(only, Random(0)) is None
    points = islice(strategy(method, spaces).points({only: 0.9}, Random(0)), 20)
    assert {p.space for p in points} == {"rows_at_once", "multi_level_tiles"}


@pytest.mark.parametrize("count", [1, 4])
def test_what_those_who_compile_it_would_refuse_is_not_tried(count: int) -> None:
    """Steps that a space is trusted with are asked for their legality before they cost a trial.

    A search does not end where all that it drew at once is refused.
    """

    def sometimes(sch: Schedule) -> None:
        rows, _, summed = sch.get_loops("b0")
        factor = sch.sample_categorical([2, 3, 4, 6, 8], [0.2] * 5)
        outer, _ = sch.split(summed, [None, factor])
        sch.parallel([rows, outer][sch.sample_categorical([0, 1], [0.5, 0.5])])

    (task,) = tasks(MATMUL)
    spaces = [ProgramSpace(task.func, task.target, sometimes, proven=True)]
    search = Search(task, lambda: spaces, partial(strategy, "random"), PriorModel(), Random(0))
    proposed: list[Proposal] = []
    while proposals := search.propose(count):
        proposed += proposals
        for proposal in proposals:
            search.tell(proposal, Measured(2.0, 1.0))
    assert [decisions_of(p.point)[1] for p in proposed] == [0] * 5
    assert search.exhausted
