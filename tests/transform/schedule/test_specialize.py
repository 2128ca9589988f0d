"""Symbols become numbers before, between and after other steps: the values stay."""

from __future__ import annotations

from random import Random

import pytest

from tests.transform.schedule.hostile import HOSTILE
from tests.transform.schedule.hostile.program import Program, differ
from tests.transform.schedule.test_hostile import several
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.signature import size_params
from unity.ir.well_formed.verify import verify
from unity.transform.schedule import Schedule, Trace

SYMBOLIC = sorted(name for name, p in HOSTILE.items() if p.sizes != ({},))


@pytest.mark.parametrize("seed", range(24))
def test_values_stay(seed: int) -> None:
    random = Random(seed)
    name = random.choice(SYMBOLIC)
    sizes = random.choice(HOSTILE[name].sizes)
    sch, _ = several(name, random, 2)
    sch.specialize(dict(sizes))
    verify(IRModule({"main": sch.func}))
    assert not size_params(sch.func)
    alone = Program(HOSTILE[name].params, HOSTILE[name].body, (sizes,))
    assert differ(alone, HOSTILE[name].func(), sch.func) is None
    again = Schedule(HOSTILE[name].func()).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None


def test_tiles_of_a_known_size_need_no_predicate() -> None:
    sch = Schedule(HOSTILE["symbolic"].func())
    loop = sch.get_loops("e")[0]
    sch.specialize({"n": 8})
    _, inner = sch.split(loop, [None, 4])
    sch.vectorize(inner)
    assert "T.where" not in str(sch.func)
    assert [p.name for p in size_params(sch.func)] == ["m"]


def test_explicit_sizes_stay_with_callers() -> None:
    program = Program(
        "a: f32[Buffer, 4], k: T.size, c: f32[Buffer, 4]",
        """
for i in range(4):
    with T.block("copy"):
        vi = T.axis.spatial(4, i)
        c[vi] = a[vi]
""",
    )
    with pytest.raises(UnityError, match="'k' is a parameter of its own"):
        Schedule(program.func()).specialize({"k": 3})
