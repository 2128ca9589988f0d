"""``python -m tests.script.tvmscript_numbers``: TVM's own graph functions, run by TVM and by Unity.

The graph functions of head that `tvmscript_sources` reads are called with what `drawn_inputs` has,
by a seed of each source's own. TVM 0.27 compiles and runs each for this CPU (`tvm_graphs`); Unity's
compiled program and its interpreter must say the same. `stand_ins` are what both call where a
source names functions that nobody has. Each source has a child process and a limit of time for
either side; what is compiled in time and not interpreted is said to be.

What was found goes to ``tvmscript_numbers.json``: what is the same, and all others with what was
said. What one of them can't read, compile or run counts apart. ``--only TEXT`` takes sources whose
place holds the text; ``--resume`` those that the file says nothing of, ``--again`` those that it
does not call the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import unity
from unity.errors import UnityError, UnsupportedError
from unity.interpreter import interpret
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.script import tvmscript

from .drawn_inputs import NotComparableError, inputs_of
from .isolated import LATE
from .stand_ins import StandIn, parameters, stand_ins, with_stand_ins
from .tvm_graphs import run_graph
from .tvmscript_sources import Fate, Outcome, Script, outcomes, scripts

RESULTS = Path(__file__).with_suffix(".json")
LIMIT = 90.0
"""Seconds for a source, of either side."""
_HALF = "products are added in float16: TVM rounds each sum, and is"
_PRECISION = "relax/test_transform_to_mixed_precision.py"
_UNSORTED = "its boundaries are drawn and so not sorted, where bucketize promises nothing"
EXPLAINED: Mapping[str, str] = {
    "relax/test_frontend_from_exported_program.py:7396 Expected": _UNSORTED,
    "relax/test_frontend_from_fx.py:6043 Expected": _UNSORTED,
    **{
        f"{_PRECISION}:{place}": f"{_HALF} {times} times as far from those in float64"
        for place, times in {
            "75 Expected2": 3.9,
            "143 Expected2": 4.0,
            "228 Expected2": 5.4,
            "315 Expected2": 5.5,
            "394 Expected2": 23.5,
            "504 Expected2": 4.7,
            "606 Expected2": 24.8,
            "668 Expected2": 4.8,
            "798 Expected2": 4.2,
            "885 Expected": 3.8,
            "938 Expected": 3.0,
            "965 Expected_no_bias_cast": 5.3,
            "1033 Expected": 3.3,
        }.items()
    },
    "relax/test_transform_codegen_pass.py:299 Before": f"4,096 {_HALF} 151 from 1,490 in float64, "
    "Unity 0.3",
    "relax/test_training_loss.py:229 expected": "a product is declared as a scalar, has the shape"
    " (3, 5), at which TVM does not look",
    "relax/test_transform_to_mixed_precision.py:916 Input": "its result is declared with 64 rows,"
    " has 62, at which TVM does not look",
    "relax/test_transform_legalize_ops_nn.py:2537 Expected": "TVM's kernel takes axis 1 for the"
    " channels, of which the last axis has c: it reads max(c, h) elements of buffers that have c"
    " or h; with c = h both are the same",
    "relax/test_transform_legalize_ops_nn.py:449 Expected": "written for 8 groups: of fewer"
    " channels it makes nothing, and what it returns was never written",
    **dict.fromkeys(
        (
            "relax/test_vm_builtin_lower.py:89 Before",
            "relax/test_vm_builtin_lower.py:118 Before",
        ),
        "the shape that it is given is drawn, (3, 3) or (0, 1), which 16 numbers don't have:"
        " refused here, not looked at by TVM",
    ),
    "relax/test_transform_rewrite_cuda_graph.py:712 Before": "it gives a function memory that was"
    " never written",
    "relax/test_transform_to_mixed_precision.py:864 Module": "its result is declared with 64 rows,"
    " has 63, at which TVM does not look",
    "relax/test_tvmscript_parser_op_vision.py:38 foo": "TVM fills its table of boxes up to the most"
    " that there may be; here it has those that are chosen",
    "relax/test_codegen_cutlass.py:2095 Module": "its result is declared with 8 columns, has 16, "
    "at which TVM does not look",
    "relax/test_transform_lazy_transform_params.py:620 TransformModule": "its results are declared"
    " in the other order, at which TVM does not look",
    **dict.fromkeys(
        (
            "relax/test_transform_attach_global_symbol.py:91 Before",
            "relax/test_transform_attach_global_symbol.py:104 Expected",
        ),
        "its kernel stores one of two elements: of TVM the other is what memory held, here the"
        " kernel is refused",
    ),
    "relax/test_transform_attach_global_symbol.py:31 Before": "its one graph function is private:"
    " TVM's machine runs it, here only what is public can be called of an executable",
    "relax/test_op_vision.py:1322 NMSModule": "three boxes of a class at most, a constant that has"
    " a name: TVM sees it only where it stands in the call, and takes all; then both are the same",
    "relax/test_frontend_onnx.py:11288 ExpectedRoiAlignHalfPixel": "a region of image 1 is drawn,"
    " and there is image 0 alone: TVM reads what lies behind; of image 0 both are the same",
}
"""By place: why a source's numbers are not the same."""
ALONE = "compiled alone: interpreting it takes longer than there is time"
"""What is said of what is the same and was not interpreted."""
BATCH = 20
"""Sources after which the file is written."""
APART, DIFFERENT = "not compared", "different"
_NAMES: Mapping[Fate, str] = {"read": "same", "raw": DIFFERENT, "refused": APART}
Array: TypeAlias = npt.NDArray[np.generic]
_ENTRIES = ("main", "forward", "foo", "func", "f")
_FIXED = {"float16": (2e-2, 2e-2), "bfloat16": (6e-2, 6e-2), "float64": (1e-7, 1e-7)}
"""By dtype: how far results may be apart, of their size and at all. Of others `_CLOSE`."""
_CLOSE = (1e-3, 1e-4)


def entry(module: IRModule) -> tuple[str, Function]:
    """The function that is run: ``main``, or the first one."""
    functions = module.graph_functions()
    if not functions:
        raise NotComparableError("no graph function")
    name = next((n for n in _ENTRIES if n in functions), next(iter(functions)))
    return name, functions[name]


def seed_of(script: Script) -> int:
    """A seed of its own for each source."""
    return int.from_bytes(hashlib.sha256(script.place.encode()).digest()[:4], "little")


def flat(value: object) -> list[Array]:
    """The arrays of a result, in order; shapes and numbers are arrays."""
    if value is None:
        return []
    if isinstance(value, tuple | list):
        if value and all(isinstance(v, int) for v in value):
            return [np.asarray(value)]
        return [a for item in value for a in flat(item)]
    return [np.asarray(value)]


def by_tvm(folder: str, script: Script) -> Outcome:
    """Run a source by TVM, and leave what it says in a file of the folder."""
    try:
        module = tvmscript.parse(script.text)
        name, function = entry(module)
        given, named = inputs_of(function, seed_of(script)), stand_ins(module)
        found = run_graph(script.text, name, given, named)
        found += _effects([*named.values(), *given])
    except UnityError as error:
        return Outcome("refused", f"not read: {error.message}")
    except NotComparableError as error:
        return Outcome("refused", str(error))
    except Exception as error:  # TVM's errors are of any type
        return Outcome("refused", f"TVM: {type(error).__name__}: {_reason(error)}")
    np.savez(_file(folder, script), *[a.view(np.uint8) if _is_odd(a) else a for a in found])
    return Outcome("read")


def _effects(of: Sequence[object]) -> list[Array]:
    """What stand-ins with effects were called with, in order."""
    return [a for it in of if isinstance(it, StandIn) for a in it.given]


def _is_odd(array: Array) -> bool:
    return array.dtype.kind == "V"


def _reason(error: Exception) -> str:
    """The last line that says something."""
    lines = [line.strip(" |^") for line in str(error).splitlines()]
    return next((line for line in reversed(lines) if line), "")[:160]


def by_unity(folder: str, script: Script) -> Outcome:
    """Run a source by the interpreter and compiled, and compare with what TVM left."""
    with np.load(_file(folder, script)) as file:
        wanted = [file[name] for name in file.files]
    read = tvmscript.parse(script.text)
    name, function = entry(read)
    named, bound = stand_ins(read), parameters(function)
    module = _public(with_stand_ins(read, name, named, bound), name)
    for who, run in (
        ("compiled", lambda args: unity.compile(module)[name](*args)),
        ("interpreted", lambda args: interpret(module, name, list(args))),
    ):
        given = inputs_of(function, seed_of(script))
        called = [*named.values(), *bound.values()]
        for it in called:
            it.given.clear()
        try:
            found = flat(run([a for a in given if not isinstance(a, StandIn)])) + _effects(called)
        except Exception as error:  # each is to be explained
            if "unity.register_function('vm." in str(error):
                return Outcome("refused", f"calls TVM's own runtime: {_reason(error)}")
            if "is not implemented" in str(error) or isinstance(error, UnsupportedError):
                return Outcome("refused", f"{who}: {_reason(error)}")
            return Outcome("raw", f"{who}: {type(error).__name__}: {_reason(error)}")
        differs = difference(found, wanted)
        if differs is not None:
            return Outcome("raw", f"{who}: {differs}")
        _file(folder, script).with_suffix(f".{who}").touch()
    return Outcome("read")


def _public(module: IRModule, name: str) -> IRModule:
    """The module with a function that can be called from outside."""
    found = module[name]
    assert isinstance(found, Function)
    public = replace(found, attrs=found.attrs.without("private"))
    return IRModule({**module, name: public}, module.attrs)


def difference(found: Sequence[Array], wanted: Sequence[Array]) -> str | None:
    """Where results are not the same; None if they are."""
    if len(found) != len(wanted):
        return f"{len(found)} results, of TVM {len(wanted)}"
    for k, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        if mine.shape != theirs.shape:
            return f"result {k} has the shape {mine.shape}, of TVM {theirs.shape}"
        if theirs.dtype.kind == "V" or mine.dtype.kind == "V":
            continue
        if mine.dtype != theirs.dtype and mine.ndim:
            return f"result {k} is {mine.dtype}, of TVM {theirs.dtype}"
        relative, absolute = _FIXED.get(mine.dtype.name, _CLOSE)
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        if not np.allclose(a, b, relative, absolute, equal_nan=True):
            worst = float(np.nanmax(np.abs(a - b)))
            return f"result {k} differs by {worst:.3g}"
    return None


def _file(folder: str, script: Script) -> Path:
    name = hashlib.sha256(f"{script.set} {script.place}".encode()).hexdigest()[:20]
    return Path(folder) / f"{name}.npz"


def compared(given: Sequence[Script], jobs: int, limit: float = LIMIT) -> dict[str, Outcome]:
    """What becomes of each source, by its place."""
    found: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        theirs: list[Script] = []
        for script, result in outcomes(given, jobs, limit, partial(by_tvm, folder)):
            if result.fate == "read":
                theirs.append(script)
            else:
                said = result.said if result.fate == "refused" else f"TVM: {result.said}"
                found[script.place] = Outcome("refused", said)
        for script, result in outcomes(theirs, jobs, limit, partial(by_unity, folder)):
            slow = result == Outcome("raw", LATE)
            alone = slow and _file(folder, script).with_suffix(".compiled").exists()
            found[script.place] = Outcome("read", ALONE) if alone else result
    return found


def summary(found: Mapping[str, Outcome]) -> dict[str, object]:
    """What goes to the file."""
    places = {
        name: {p: r.said for p, r in sorted(found.items()) if r.fate == fate}
        for fate, name in _NAMES.items()
    }
    reasons = [re.sub(r"\b\d+\b", "#", said)[:100] for said in places[APART].values()]
    return {
        "counts": {name: len(held) for name, held in places.items()},
        "reasons": dict(Counter(reasons).most_common()),
        "explained": {p: EXPLAINED[p] for p in places[DIFFERENT] if p in EXPLAINED},
        **places,
    }


def stored() -> dict[str, Outcome]:
    """What the file says."""
    if not RESULTS.exists():
        return {}
    read = json.loads(RESULTS.read_text())
    return {
        place: Outcome(fate, said)
        for fate, name in _NAMES.items()
        for place, said in read[name].items()
    }


def chosen(only: str = "") -> list[Script]:
    """The sources of head that hold graph functions of a CPU and that TVM takes."""
    return [
        s
        for s in scripts() or ()
        if s.set == "head" and s.counts and s.device is None and s.kind != "prim"
        and "R.function" in s.text and only in s.place
    ]  # fmt: skip


def main() -> int:
    """Compare all, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a source")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    if scripts() is None:
        print("shared/tvmscript does not lie beside the repository", file=sys.stderr)
        return 2
    given = chosen(options.only)
    found = stored() if options.only or options.resume or options.again else {}
    if options.resume:
        given = [s for s in given if s.place not in found]
    elif options.again:
        given = [s for s in given if s.place not in found or found[s.place].fate != "read"]
    for begin in range(0, len(given), BATCH):
        found.update(compared(given[begin : begin + BATCH], options.jobs, options.limit))
        RESULTS.write_text(json.dumps(summary(found), indent=1) + "\n")
    made = summary(found)
    print(json.dumps({k: made[k] for k in ("counts", "reasons", DIFFERENT)}, indent=1))
    return 1 if made[DIFFERENT] else 0


if __name__ == "__main__":
    sys.exit(main())
