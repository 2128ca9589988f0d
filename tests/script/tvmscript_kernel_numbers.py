"""``python -m tests.script.tvmscript_kernel_numbers``: TVM's own kernels, compiled by both.

Of the sources that both read (`tvmscript_sources`) and that hold kernels alone, each kernel is
compiled by TVM and by Unity and run with the same inputs, made of a seed that is the source's
place. What it leaves in its arguments must be the same: integers and bools exactly, floats within
what the order of additions may change; of float16, what is not TVM's must be nearer to the same
kernel in float64. Sizes that are not said are small.

Each source runs in a process of its own. What was found goes to
``tvmscript_kernel_numbers.json``: how many agree, and of each kernel what came of it. A difference
without a reason (`REASONS`) is a failure, and so is what Unity does not run, unless it is right
(`RIGHTLY`). ``--only TEXT`` runs the sources whose place holds it, ``--resume`` those that the
file says nothing of. `tvmscript_numbers` does this for graph functions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.dims import Dim, evaluate, symbols_of
from unity.ir.dtype import DType
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import to_dim
from unity.script import tvmscript
from unity.script.program import ScriptPrimFunc

from .isolated import isolated
from .tvmscript_sources import Script, scripts

Array: TypeAlias = npt.NDArray[Any]
RESULTS = Path(__file__).with_name("tvmscript_kernel_numbers.json")
BATCH = 20
"""Sources after which the file is written."""
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
Fate: TypeAlias = Literal["same", "nearer", "differs", "theirs", "ours", "left out"]
SAME: tuple[Fate, ...] = ("same", "nearer")
RIGHTLY = (
    "names no library",
    "which must not be negative",
    "which must stay below",
    "is read before anything is stored in it",
    "what the kernel takes for granted does not hold",
)
"""What Unity says of kernels that no machine could run: of memory that is none of theirs, of
functions that are nowhere, of inputs that they exclude."""
_UNWRITTEN = "three quarters of a temporary are read that nobody wrote"
_NOWHERE = "n is defined nowhere, for which TVM's own check of the program is switched off"
REASONS: Mapping[str, str] = {
    "s_tir/schedule/test_tir_schedule_rfactor.py:97 matmul_not_stage_pipeline": _UNWRITTEN,
    "s_tir/schedule/test_tir_schedule_state_cached_flags.py:228 elementwise_subblock_uncovered":
    _UNWRITTEN,
    "s_tir/transform/test_s_tir_transform_compact_buffer_region.py:1202 expected":
    "column and row 127 of 127 are read, which is memory behind the arguments",
    "te/test_te_create_primfunc.py:989 tir_workload":
    "where no loop runs nothing sets the sum to 0: 64 results are never written",
    "tirx-transform/test_tir_transform_simplify.py:626 before":
    "shifts by negative numbers, which mean nothing",
    **{
        f"tirx-transform/test_tir_transform_simplify.py:{place}": _NOWHERE
        for place in ("1258 Before", "1266 Expected", "1279 Before", "1287 Expected")
    },
}  # fmt: skip
"""Why the numbers differ, by a source's place; each is looked into."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one function of a source.

    Attributes:
        function: Its name; empty where the source was not even taken apart.
        fate: ``theirs`` and ``ours`` are failures to compile or to run it; ``nearer`` are numbers
            of narrow floats that are not TVM's but nearer to those in float64: where TVM adds
            products one by one and rounds each sum, here several sums are added at the end.
        said: What was said of it.
    """

    function: str
    fate: Fate
    said: str = ""


Found: TypeAlias = dict[str, tuple[Compared, ...]]
"""What came of sources, by place."""


def compare(script: Script) -> tuple[Compared, ...]:
    """Compile and run a source's functions by both, in this process."""
    try:
        ours = tvmscript.parse(script.text)
    except UnityError:
        return (Compared("", "left out", "is not read"),)  # `tvmscript_sources` counts those
    if ours.graph_functions():
        return (Compared("", "left out", "holds graph functions"),)
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
    if difference is None:
        return kind("same")
    exact = _exact(script, name, given)
    if exact is not None and _error(found, exact) <= _error(expected, exact):
        return kind("nearer", difference)
    return kind("differs", difference)


def _exact(script: Script, name: str, given: Sequence[Array | int]) -> list[Array] | None:
    """What a kernel of narrow floats leaves if they are float64; None if it has none."""
    text = re.sub(r"\b(bfloat16|float16|float32)\b", "float64", script.text)
    if text == script.text or not re.search("float16", script.text):
        return None
    func = tvmscript.parse(text).prim_funcs()[name]
    wide = [
        a.astype(p.dtype.numpy) if isinstance(p, Buffer) and isinstance(a, np.ndarray) else a
        for p, a in zip(func.params, given, strict=True)
    ]
    ScriptPrimFunc(name, func)(*wide)
    return [a for a in wide if isinstance(a, np.ndarray)]


def _error(found: Sequence[Array], exact: Sequence[Array]) -> float:
    """The greatest distance of results from exact ones; infinite if one is no number."""
    apart = [
        np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0.0)
        for a, b in zip(found, exact, strict=True)
    ]
    return float(np.nan_to_num(np.max(apart), nan=np.inf))


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
    return REASONS.get(place, "")


def summary(found: Found) -> dict[str, object]:
    """What goes to the file."""
    rows = [(place, c) for place, compared in sorted(found.items()) for c in compared]
    return {
        "sources": len(found),
        "sources with the same numbers": sum(
            any(c.fate in SAME for c in compared) and all(c.fate != "differs" for c in compared)
            for compared in found.values()
        ),
        "functions": {fate: sum(c.fate == fate for _, c in rows) for fate in get_args(Fate)},
        **{
            fate: {f"{place}: {c.function}": c.said for place, c in rows if c.fate == fate}
            for fate in get_args(Fate)
        },
    }


def stored() -> Found:
    """What the file says, by place."""
    if not RESULTS.exists():
        return {}
    read = json.loads(RESULTS.read_text())
    found: Found = {}
    for fate in get_args(Fate):
        for whole, said in read[fate].items():
            place, _, function = whole.rpartition(": ")
            found[place] = (*found.get(place, ()), Compared(function, fate, said))
    return found


def unexplained(found: Found) -> list[str]:
    """The places at which numbers differ for no known reason, or Unity should do more."""
    bad = {p for p, compared in found.items() for c in compared if c.fate == "differs"}
    refused = [
        f"{place}: {c.said}"
        for place, compared in sorted(found.items())
        for c in compared
        if c.fate == "ours" and not any(why in c.said for why in RIGHTLY) and not reason(place)
    ]
    return sorted(place for place in bad if not reason(place)) + refused


def main() -> int:
    """Compare all sources of TVM's head, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    given = scripts()
    if given is None:
        print("shared/tvmscript does not lie beside the repository", file=sys.stderr)
        return 2
    found = stored() if options.only or options.resume else {}
    chosen = [
        s for s in given
        if s.set == "head" and s.counts and s.device is None and "R.function" not in s.text
        and options.only in s.place and not (options.resume and s.place in found)
    ]  # fmt: skip
    for count, (script, compared) in enumerate(
        isolated(compare, _lost, chosen, options.jobs, LIMIT), start=1
    ):
        found[script.place] = compared
        if count % BATCH == 0 or count == len(chosen):
            RESULTS.write_text(json.dumps(summary(found), indent=1) + "\n")
    made = summary(found)
    print(json.dumps({k: v for k, v in made.items() if k not in SAME}, indent=1))
    print("\n".join(unexplained(found)))
    return 1 if unexplained(found) else 0


if __name__ == "__main__":
    sys.exit(main())
