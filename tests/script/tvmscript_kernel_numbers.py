"""``python -m tests.script.tvmscript_kernel_numbers``: TVM's own kernels, compiled by both.

Of the sources that both read (`tvmscript_sources`) and that hold kernels alone, each kernel is
compiled by TVM and by Unity and run with the same inputs, made of a seed that is the source's
place. What it leaves in its arguments must be the same: integers and bools exactly, floats within
what the order of additions may change. Sizes that are not said are small.

Each source runs in a process of its own. What was found goes to
``tvmscript_kernel_numbers.json``: how many agree, each difference with its reason (`REASONS`; one
without is a failure) and each kernel that Unity does not compile or run. What is not the same is
printed as it is found; ``--only TEXT`` runs the sources whose place holds the text, and writes no
file. `tvmscript_numbers` does this for graph functions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.convert import to_dim
from unity.ir.dims import Dim, evaluate, symbols_of
from unity.ir.dtype import DType
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import Buffer, PrimFunc
from unity.script import tvmscript
from unity.script.program import ScriptPrimFunc

from .isolated import isolated
from .tvmscript_sources import Script, scripts

Array: TypeAlias = npt.NDArray[Any]
RESULTS = Path(__file__).with_name("tvmscript_kernel_numbers.json")
LIMIT = 60.0
"""Seconds for a source."""
LARGEST = 1 << 22
"""Elements of an array at most: what is larger takes too long."""
SIZE = 4
"""What each unknown size is."""
MOST: Mapping[str, int] = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), 100),
    **dict.fromkeys(("uint32", "uint64"), (1 << 32) - 1),
}
"""The greatest input by dtype; other integers may be indices, of axes of extent two."""
Fate: TypeAlias = Literal["same", "differs", "theirs", "ours", "left out"]
REASONS: Mapping[str, str] = {
    "s_tir/schedule/test_tir_schedule_rfactor.py matmul_not_stage_pipeline": "three quarters of a"
    " temporary are read that nobody wrote",
    "s_tir/dlight/test_gpu_reduction.py Before": "4096 products are added in float16: TVM adds them"
    " one by one, rounding each sum; here several sums are added at the end",
}
"""Why the numbers differ, by a source's place without its line; each is looked into."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one function of a source.

    Attributes:
        function: Its name; empty where the source was not even taken apart.
        fate: ``theirs`` and ``ours`` are failures to compile or to run it.
        said: What was said of it.
    """

    function: str
    fate: Fate
    said: str = ""


def compare(script: Script) -> tuple[Compared, ...]:
    """Compile and run a source's functions by both, in this process."""
    try:
        ours = tvmscript.parse(script.text)
    except UnityError:
        return ()  # `tvmscript_sources` counts those
    if ours.graph_functions():
        return ()
    try:
        theirs = _tvm().script.from_source(script.text)
    except Exception as error:  # theirs, of any kind
        return (Compared("", "theirs", _line(error)),)
    return tuple(_kernel(script, n, f, theirs) for n, f in ours.prim_funcs().items())


def _tvm() -> Any:
    """TVM, which only this comparison needs."""
    return import_module("tvm")


def _line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:200]


class _LeftOutError(Exception):
    """What can't be compared, and why."""


def _inputs(script: Script, types: Sequence[tuple[Sequence[Dim], DType]]) -> list[Array]:
    rng = np.random.default_rng(zlib.crc32(script.place.encode()))
    found: list[Array] = []
    for shape, kind in types:
        sizes = tuple(evaluate(d, dict.fromkeys(symbols_of(d), SIZE)) for d in shape)
        if np.prod(sizes, dtype=np.float64) > LARGEST:
            raise _LeftOutError("is too large")
        if kind.is_float:
            found.append(rng.uniform(-1, 1, sizes).astype(kind.numpy))
        else:
            found.append(
                rng.integers(0, MOST.get(kind.name, 1), sizes, endpoint=True, dtype=kind.numpy)
            )
    return found


def _kernel(script: Script, name: str, func: PrimFunc, theirs: Any) -> Compared:
    """A kernel: both write to arrays that they are given."""
    tvm = _tvm()

    def kind(fate: Fate, said: str = "") -> Compared:
        return Compared(name, fate, said)

    try:
        given = _arguments(script, func)
    except _LeftOutError as why:
        return kind("left out", str(why))
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
    try:  # first: what would access memory out of bounds is refused here
        ScriptPrimFunc(name, func)(*copies)
    except UnityError as error:
        return kind("ours", error.message.splitlines()[0])
    try:
        whole = theirs if isinstance(theirs, tvm.tirx.PrimFunc) else theirs[name]
        built = tvm.compile(whole.with_attr("global_symbol", "kernel"), target="llvm")
        tensors = [tvm.runtime.tensor(a) if isinstance(a, np.ndarray) else a for a in given]
        built["kernel"](*tensors)
        expected = [np.asarray(t.numpy()) for t in tensors if not isinstance(t, int)]
    except Exception as error:  # theirs, of any kind
        return kind("theirs", _line(error))
    found = [a for a in copies if isinstance(a, np.ndarray)]
    before = [a for a in given if isinstance(a, np.ndarray)]
    if all(np.array_equal(a, b) for a, b in zip(before, expected, strict=True)):
        return kind("left out", "writes nothing that can be seen")
    difference = _difference(found, expected)
    return kind("same" if difference is None else "differs", difference or "")


def _arguments(script: Script, func: PrimFunc) -> list[Array | int]:
    types: list[tuple[Sequence[Dim], DType]] = []
    for param in func.params:
        if isinstance(param, Buffer):
            dims = [to_dim(e) for e in param.shape]
            if param.strides is not None:
                raise _LeftOutError("takes arrays with strides")
            types.append(([d for d in dims if d is not None], param.dtype))
        elif not isinstance(param, SizeVar):
            raise _LeftOutError("takes scalars")
    if "result" in {p.name for p in func.params}:
        raise _LeftOutError("returns a value, which we write to an array")
    arrays = iter(_inputs(script, types))
    return [next(arrays) if isinstance(p, Buffer) else SIZE for p in func.params]


def _difference(found: Sequence[Array], expected: Sequence[Array]) -> str | None:
    """In what results differ; None if they don't."""
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {k} is {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if a.dtype.kind in "iub":
            if not np.array_equal(a, b):
                return f"result {k}: {np.count_nonzero(a != b)} of {a.size} numbers differ"
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        slack = 1e-4 if a.dtype.itemsize >= 4 else 2e-2
        near = np.isclose(x, y, rtol=slack, atol=slack, equal_nan=True)
        if not near.all():
            most = np.nanmax(np.abs(x - y)) if np.isfinite(x - y).any() else np.nan
            return f"result {k}: {np.count_nonzero(~near)} of {a.size} differ, by up to {most:.3g}"
    return None


def _lost(why: str) -> tuple[Compared, ...]:
    return (Compared("", "theirs", why),)


def reason(place: str) -> str:
    """Why a source's numbers differ; empty if that is not known."""
    return REASONS.get(re.sub(r":\d+ ", " ", place), "")


def summary(
    found: Sequence[tuple[Script, tuple[Compared, ...]]], every: int = 1
) -> dict[str, object]:
    """What goes to the file."""
    rows = [(s, c) for s, compared in found for c in compared]
    counts = Counter(c.fate for _, c in rows)
    differences = sorted(
        (f"{s.place}: {c.function}", c.said, reason(s.place))
        for s, c in rows
        if c.fate == "differs"
    )
    ours = sorted((f"{s.place}: {c.function}", c.said) for s, c in rows if c.fate == "ours")
    said = {
        fate: [
            [n, text]
            for text, n in Counter(
                re.sub(r"\d+", "#", c.said) for _, c in rows if c.fate == fate
            ).most_common(25)
        ]
        for fate in ("theirs", "left out")
    }
    return {
        "one source of": every,
        "sources": len(found),
        "sources with the same numbers": sum(
            any(c.fate == "same" for c in compared) and all(c.fate != "differs" for c in compared)
            for _, compared in found
        ),
        "functions": dict(sorted(counts.items())),
        "differences": [list(row) for row in differences],
        "not run by Unity": [list(row) for row in ours],
        "not compared": said,
    }


def _has_graph(script: Script) -> bool:
    return "R.function" in script.text


def main() -> int:
    """Compare all sources of TVM's head, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="one of so many")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    given = scripts()
    if given is None:
        print("shared/tvmscript does not lie beside the repository", file=sys.stderr)
        return 2
    chosen = [
        s for s in given
        if s.set == "head" and s.counts and s.device is None and not _has_graph(s)
        and options.only in s.place
    ]  # fmt: skip
    found: list[tuple[Script, tuple[Compared, ...]]] = []
    for pair in isolated(compare, _lost, chosen[:: options.every], options.jobs, LIMIT):
        found.append(pair)
        for c in pair[1]:
            if c.fate in ("ours", "differs"):
                print(f"{pair[0].place}: {c.function}: {c.fate}: {c.said}", flush=True)
    made = summary(found, options.every)
    if not options.only:
        RESULTS.write_text(json.dumps(made, indent=1) + "\n")
    print(json.dumps(made, indent=1))
    unexplained = [
        s.place
        for s, compared in found
        if any(c.fate == "differs" for c in compared) and not reason(s.place)
    ]
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
