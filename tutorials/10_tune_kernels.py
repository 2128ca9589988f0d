"""Tutorial 10: find schedules that are faster on this machine than the rules' own, and keep them.

Run it: ``python tutorials/10_tune_kernels.py``. Rules decide by what they know of a machine; a
search tries what they may decide, and what nobody decided. A few trials are enough to see how it
goes; minutes to hours are what it is for: ``unity tune model.onnx --db tuned.jsonl --time 10m``.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

import unity
from unity import script
from unity.script import R, Tensor, f32
from unity.transform import Context, pipeline
from unity.transform.schedule import Schedule
from unity.tuning.records import Records
from unity.tuning.spaces import ProgramSpace, RuleSpace
from unity.tuning.tasks import tasks_of


# %% A program. Its kernels are what is tuned: equal ones once, each for what it counts.
@script.function
def main(x: f32[Tensor, 96, 128], w: f32[Tensor, 128, 160]) -> f32[Tensor, 96, 160]:
    return R.nn.relu(R.matmul(x, w))


module = script.module(main)
target = unity.compile(module, threads=1).target
(task,) = tasks_of(module, pipeline(), Context(target))
print(task.name, task.identity, task.count)

# %% The space of the rules: the default is its first point, and every decision has neighbours.
rules, random = RuleSpace(task.func, target), Random(0)
default = rules.first(random)
assert default is not None
for _ in range(3):
    near = rules.mutate(default, random)
    print(near.text if near is not None else "(the draw was not legal)")


# %% A space of one's own is a function that takes steps and leaves choices to `sample_*`. The block
# is called b0: blocks of a task are numbered, so that a record fits wherever the kernel occurs.
def rows_on_lanes(sch: Schedule) -> None:
    i, j, k = sch.get_loops("b0")
    rows = sch.sample_categorical([1, 2, 3, 4], [0.25] * 4)
    tile, row = sch.split(i, [None, rows])
    strip, lane = sch.split(j, [None, 8])
    sch.reorder(tile, strip, k, row, lane)
    sch.decompose_reduction("b0", k)
    sch.vectorize(lane)
    sch.unroll(row)


mine = ProgramSpace(task.func, target, rows_on_lanes)
point = mine.sample(random)
assert point is not None
print(point, mine.schedule(point).func, sep="\n")

# %% The search. Each candidate is compiled and run in a child process, compared with the default
# kernel, and timed by turns with it. Ctrl-C keeps what was found, and the next call goes on. At the
# end the fastest run within the program: what is faster alone may be slower there.
folder = Path(TemporaryDirectory().name)
db = folder / "tuned.jsonl"
found = unity.tune(
    module, threads=1, trials=12, db=db, spaces=[rows_on_lanes], report=folder / "report"
)
print(found)
print(sorted(p.name for p in (folder / "report").iterdir()))

# %% What is kept: a line a trial, and for what was faster its steps.
records = Records(db)
for trial in records.trials(task.identity)[:4]:
    took = "failed" if trial.seconds is None else f"{trial.seconds * 1e6:.1f} us"
    print(trial.space, trial.point, took)

# %% `compile` lays the kernel out by its record, here and in any program that has it.
tuned = unity.compile(module, threads=1, db=db)
rng = np.random.default_rng(0)
x, w = rng.standard_normal((96, 128), np.float32), rng.standard_normal((128, 160), np.float32)
np.testing.assert_allclose(tuned(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-3)
print(*tuned.explain().notes, sep="\n")
