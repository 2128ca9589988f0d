"""Tutorial 4: choose what computes each call: our kernels, a library, an external engine.

Run it: ``python tutorials/04_choose_implementations.py``. It runs with what is installed: ONNX
Runtime and OpenVINO are candidates where they are there, and OpenBLAS comes with numpy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import unity
import unity.demo
from unity.runtime.explanation import Explanation
from unity.transform.graph.resolve import CallSite, Candidate
from unity.transform.pattern import Pattern, any_, op

path = Path(unity.demo.__file__).parent / "digits.onnx"
with np.load(path.with_suffix(".npz")) as held_out:
    images = held_out["images"][:64]

# %% Everything is our own kernels if nothing is said. `explain` has a row for each call site.
ours = unity.compile(path)
scores = ours(images)
print(ours.explain())


def check(executable: unity.Executable) -> Explanation:
    """It computes what our kernels compute; what was chosen is handed back."""
    np.testing.assert_allclose(executable(images), scores, rtol=1e-4, atol=1e-4)
    return executable.explain()


# %% By estimate: the arithmetic and the bytes of a call, and how well each kind does such work.
table = check(unity.compile(path, resolve="static"))
print(table.summary())

# %% A row knows all candidates, also those that can't be taken, and why.
for candidate in table["fc"].candidates:
    print(candidate.text)
possible = [c.implementation for c in table["fc"].candidates if c.why_not is None]
engines = [name for name in possible if name.startswith("engine:")]
libraries = [name for name in possible if name.startswith("library:")]

# %% Your word counts more: by op, by the name of a site (as the table writes it), with `*`, or by a
# pattern. The first that fits is taken; `"*"` says what becomes of the rest.
if libraries:
    table = check(unity.compile(path, resolve={"matmul": libraries[0], "*": "static"}))
    assert table["main/fc"].choice == libraries[0]
if engines:
    biased = op("matmul", any_("x"), any_("w")) + any_("bias")
    theirs: list[str | Pattern] = ["main/conv2*", "relu2", biased]
    table = check(unity.compile(path, resolve=[(key, engines[0]) for key in theirs]))
    print(table.counts())
    # Neighbours that one engine has are one call, of the subgraph named here.
    assert table["conv2"].group == table["relu2"].group != ""
    assert table["fc_1"].choice == engines[0]  # the root of what the pattern matches: the sum

# %% Our own kernels have forms where there is more than one good way: convolutions (`tir:direct`,
# `tir:winograd`, `tir:gemm`) and products by constants (`tir:packed`, `tir:unpacked`). An estimate
# prefers one of them; they can be named like anything else, in the program, too:
# `R.nn.conv2d(x, w, algorithm="direct")`.
for candidate in table["conv2"].candidates:
    print(candidate.text)
table = check(unity.compile(path, resolve={"matmul": "tir:unpacked"}))
assert table["fc"].choice == "tir:unpacked"

# %% What names a site is meant, and refused if it can't be.
try:
    unity.compile(path, resolve={"main/relu1": "library:openblas"})
except unity.UnityError as error:
    print(error)


# %% Or a function of yours decides. It sees what the compiler sees.
def choose(site: CallSite, candidates: Sequence[Candidate]) -> Candidate:
    """Matrix products by somebody else if there is anybody, the rest by us."""
    return candidates[-1] if site.op_name == "matmul" else candidates[0]


table = check(unity.compile(path, resolve=choose))
print(table["fc"].choice, "because", table["fc"].reason)

# %% Or the clock: whole programs and their parts are run each way, at the sizes you say, and the
# fastest is taken. What was decided is remembered: the next compile is as quick as any.
measured = unity.compile(path, resolve="measure", sizes={"batch": len(images)})
table = check(measured)
print(table)
single = [r.seconds for r in table.roads if r.seconds and not r.name.startswith("mixed")]
assert table.total is not None
assert table.total <= min(single)  # mixtures of roads have to be faster than any road alone

# %% The table is data as well: JSON for tools. In a terminal `rich.print` shows it with all
# candidates, a notebook shows it as HTML.
data = json.loads(table.to_json())
print([site["choice"] for site in data["sites"]])
assert Explanation.from_json(table.to_json()) == table
