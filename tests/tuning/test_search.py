"""The search of one kernel: what it says is fastest."""

from __future__ import annotations

from unity.tuning.cost import PriorModel
from unity.tuning.records import Records, Trial
from unity.tuning.session import Session
from unity.tuning.workers import Measured
from unity.tuning.workers.machine_key import key_of_target

from .kernels import MATMUL, tasks


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
