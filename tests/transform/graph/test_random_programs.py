"""Random programs through every graph pass: each verifies, and computes what it did before."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.generators.graph import arguments_for, module
from tests.transform.cases import keeps_meaning
from unity.ir.equality import first_difference
from unity.script import constants_of, parse, print_module
from unity.transform.pipeline import GRAPH, KERNELS


@pytest.mark.rotated(12)
@pytest.mark.parametrize("seed", range(24))
def test_graph_passes_keep_the_meaning(seed: int) -> None:
    before = module(Random(seed), size=16)
    args = arguments_for(before, np.random.default_rng(seed))
    after = keeps_meaning((GRAPH + KERNELS).passes, before, args)
    again = parse(print_module(after), constants_of(after))
    assert first_difference(again, after) is None
