"""Files that somebody changed and made the checksums fit: each is an error that says what is wrong.

Machine code is not among it: that is trusted, and no check could tell what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import unity
from unity import runtime
from unity.script import parse
from unity.transform.graph import CountNonzero

from .forging import Forgery, Plain, forged, put_together, refused, taken_apart

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, R.rank(1)]:
    y = R.add(R.nn.relu(x), R.const("c"))
    z = R.multiply(y, R.sum(y, axis=(0,), keepdims=True))
    i = R.nonzero(R.reshape(z, (n * 4,)))
    return R.take(R.reshape(z, (n * 4,)), R.reshape(i, (-1,)), axis=0)
@script.function
def plain(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    return R.exp(x)
"""
HUGE = 10**30


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("artifact") / "a.unity"
    module = parse(PROGRAM, {"c": np.ones(4, np.float32)})
    unity.compile(module, threads=2, pipeline=unity.pipeline().without(CountNonzero)).save(path)
    return path.read_bytes()


def test_what_is_put_together_unchanged_is_loaded(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.unity"
    path.write_bytes(put_together(taken_apart(content)))
    loaded = runtime.load(path)
    np.testing.assert_allclose(loaded["plain"](np.zeros((1, 4), np.float32)), np.ones((1, 4)))
    np.testing.assert_allclose(loaded(np.zeros((2, 4), np.float32)), np.full(8, 2))


def deep(levels: int) -> Plain:
    """A size of many levels."""
    size: Plain = 1
    for _ in range(levels):
        size = {"is": "SizeOp", "op": "add", "a": size, "b": 1}
    return size


def first(f: Forgery, **instruction: Plain) -> None:
    """Put an instruction before all others."""
    f.main["code"].insert(0, instruction)
    f.main["labels"].insert(0, "")


MANIFEST: Mapping[str, tuple[Callable[[Forgery], object], str]] = {
    "no manifest": (lambda f: f.metadata.update(forged="[]"), "expected a record Manifest"),
    "no JSON": (lambda f: f.metadata.update(forged="{"), "it is no JSON"),
    "deep nesting": (lambda f: f.metadata.update(forged="[" * 10**5), "nested too deeply"),
    "a number of many digits": (
        lambda f: f.metadata.update(forged="9" * 10**4), "its manifest is of another kind"
    ),
    "another record": (lambda f: f.manifest.update({"is": "Target"}), "expected a record Manifest"),
    "a class of Python": (
        lambda f: f.manifest["target"].update({"is": "subprocess.Popen"}), "expected a record Targ"
    ),
    "no pieces": (lambda f: f.manifest.pop("pieces"), "lacks the field 'pieces'"),
    "pieces that are a text": (lambda f: f.manifest.update(pieces="all"), "expected a list"),
    "pieces that are numbers": (lambda f: f.manifest.update(pieces=[1]), "expected a record Piece"),
    "a name that is a list": (
        lambda f: f.unfixed()["pieces"][0].update(name=[]), r"pieces[0].name: expected a text"
    ),
    "a negative offset": (
        lambda f: f.unfixed()["pieces"][1].update(offset=-64), "pieces[1].offset: expected a number"
    ),
    "a huge offset": (
        lambda f: f.unfixed()["pieces"][1].update(offset=HUGE), "got a larger one"
    ),
    "an offset in words": (
        lambda f: f.unfixed()["pieces"][1].update(offset="0"), "expected a whole number"
    ),
    "an offset that is true": (
        lambda f: f.unfixed()["pieces"][1].update(offset=True), "expected a whole number, got true"
    ),
    "half an offset": (
        lambda f: f.unfixed()["pieces"][1].update(offset=0.5), "expected a whole number, got 0.5"
    ),
    "an offset within a line": (
        lambda f: f.unfixed()["pieces"][1].update(offset=4), "is said to lie at 4"
    ),
    "a piece outside the file": (
        lambda f: f.unfixed()["pieces"][0].update(offset=1 << 40), "is cut short"
    ),
    "a negative length": (
        lambda f: f.unfixed()["pieces"][1].update(bytes=-1), "pieces[1].bytes: expected a number"
    ),
    "a checksum of 64 bits": (
        lambda f: f.unfixed()["pieces"][1].update(checksum=1 << 40), "pieces[1].checksum: expected"
    ),
    "two pieces of one name": (
        lambda f: f.manifest["pieces"].append(dict(f.piece("pool"))), "two pieces have one name"
    ),
    "no program": (lambda f: f.drop("program"), "the piece 'program' is missing"),
    "no constant": (lambda f: f.drop("constant/0"), "the program has"),
    "a piece too many": (
        lambda f: (
            f.manifest["pieces"].append({**f.piece("pool"), "name": "more"}),
            f.pieces.update(more=b""),
        ),
        "nothing needs the piece 'more'",
    ),
    "a billion objects": (lambda f: f.manifest.update(objects=10**9), "of 1000000000 objects"),
    "fewer than no objects": (lambda f: f.manifest.update(objects=-1), "objects: expected a num"),
    "no target": (lambda f: f.manifest.update(target=None), "target: expected a record Target"),
    "features that are a text": (
        lambda f: f.manifest["target"].update(features="avx2"), "target.features: expected a list"
    ),
    "options that are no pairs": (
        lambda f: f.manifest.update(options=[["threads"]]), "options[0]: expected a list of 2"
    ),
    "more threads than C counts": (
        lambda f: f.manifest.update(options=[["threads", 2**31]]), "it was compiled for 2147483648"
    ),
    "no threads": (
        lambda f: f.manifest.update(options=[["threads", 0]]), "it was compiled for 0 threads"
    ),
    "a symbol of no library": (
        lambda f: f.manifest.update(symbols=["libc.system"]), "the symbol 'libc.system' is not"
    ),
    "a library of fields that are none": (
        lambda f: f.manifest.update(libraries=[{"name": "m"}]), "LibraryRecord lacks the field"
    ),
    "an engine for no kernel": (
        lambda f: (
            f.manifest.update(engines=[
                {"name": "gone", "engine": "onnxruntime", "inputs": 9, "dtypes": [], "ranks": [],
                 "module": ""}]),
            f.manifest["pieces"].append({**f.piece("pool"), "name": "engine/gone"}),
            f.pieces.update({"engine/gone": b""}),
        ),
        "the tensors of the engine's kernel 'gone' are none",
    ),
    "a host function too many": (
        lambda f: f.manifest["hosts"].append({"module": "os", "name": "system"}),
        "host functions, the file",
    ),
    "an operator that is unknown": (
        lambda f: f.manifest["hosts"][0].update(argument='{"op": "format_disk", "attrs": {}}'),
        "the operator 'format_disk'",
    ),
    "an operator that is a list": (
        lambda f: f.manifest["hosts"][0].update(argument="[]"), "of an operator"
    ),
    "an operator of deep attributes": (
        lambda f: f.manifest["hosts"][0].update(argument="[" * 10**5), "of an operator"
    ),
    "native code of no function": (
        lambda f: f.manifest["native"]["functions"][0].update(name="gone"), "function 'gone'"
    ),
    "an entry that is not there": (
        lambda f: f.manifest["native"]["functions"][0].update(entry="gone"), "can't be linked"
    ),
    "a dtype that is none": (
        lambda f: f.manifest["native"]["dtypes"].append("float31"), "a dtype of the native func"
    ),
    "more dtypes than its table holds": (
        lambda f: f.manifest["native"].update(dtypes=["float32"] * 10**4), "a table unity_dtypes"
    ),
    "more of the runtime than its table holds": (
        lambda f: f.manifest["native"].update(api=["free"] * 10**4), "a table unity_python of"
    ),
    "objects that are none": (
        lambda f: f.raw.update({"object/0": b"\x7fELF and nothing else"}), "can't be linked"
    ),
    "native code that is none": (
        lambda f: f.raw.update(native=b"nothing"), "its code can't be linked"
    ),
}  # fmt: skip
PROGRAMS: Mapping[str, tuple[Callable[[Forgery], object], str]] = {
    "bytes that are no UTF-8": (lambda f: f.raw.update(program=b"\xff\xfe"), "it is no JSON"),
    "deep nesting": (lambda f: f.raw.update(program=b"[" * 10**5), "nested too deeply"),
    "another version": (lambda f: f.program.update(version=2), "a program of version 2"),
    "an unknown instruction": (
        lambda f: f.main["code"][0].update({"is": "System"}), "functions[0].code[0]: expected"
    ),
    "an instruction that is a number": (
        lambda f: f.main["code"].__setitem__(0, 7), "functions[0].code[0]: expected"
    ),
    "a label too few": (lambda f: f.main["labels"].pop(), "labels are missing"),
    "control past the end": (
        lambda f: (f.main["code"].pop(), f.main["labels"].pop()), "control runs past the last"
    ),
    "no instructions": (lambda f: f.main.update(code=[], labels=[]), "control runs past the last"),
    "two functions of one name": (
        lambda f: f.program["functions"][1].update(name="main"), "two functions have one name"
    ),
    "a register that is not there": (
        lambda f: f.code("CallKernel")["args"].__setitem__(0, 10**6), "register 1000000 of"
    ),
    "a negative register": (
        lambda f: f.code("CallKernel")["args"].__setitem__(0, -1), "args[0]: expected a number"
    ),
    "a register read before it is set": (
        lambda f: first(f, **{"is": "Move", "dst": 0, "src": len(f.main["registers"]) - 1}),
        "is not set before it is read",
    ),
    "a result that is never set": (
        lambda f: f.main.update(code=[f.main["code"][-1]], labels=[""]), "is not set before"
    ),
    "a kernel that is not there": (
        lambda f: f.code("CallKernel").update(kernel=99), "kernel 99 of"
    ),
    "an argument that is no tensor": (
        lambda f: f.main["registers"].__setitem__(
            f.code("CallKernel")["args"][0], {"is": "ObjectSpec"}),
        "is no tensor",
    ),
    "an arena that is a tensor": (
        lambda f: first(f, **{"is": "AllocArena", "dst": 0, "bytes": 64}),
        "register 0 is no arena or closure",
    ),
    "an argument too few": (lambda f: f.code("CallKernel")["args"].pop(), "takes ("),
    "a kernel of a billion buffers": (
        lambda f: f.program["kernels"][0].update(buffers=10**9), "buffers: expected a number from"
    ),
    "a kernel of an engine": (
        lambda f: f.program["kernels"][0].update(engine="onnxruntime"), "is of another engine"
    ),
    "a kernel that is not linked": (
        lambda f: f.program["kernels"][0].update(symbol="gone"), "can't be linked"
    ),
    "a host function that is not there": (
        lambda f: f.code("CallHost").update(host=5), "host function 5 of"
    ),
    "a constant that is not there": (
        lambda f: f.code("CallHost").update({"is": "LoadConst", "constant": 70}), "has no field"
    ),
    "a constant beyond the last": (
        lambda f: first(f, **{"is": "LoadConst", "dst": 0, "constant": 70}), "constant 70 of"
    ),
    "a constant of another size": (
        lambda f: f.program["constants"][0].update(shape=[1 << 40]), "takes 4398046511104 bytes"
    ),
    "a constant of sizes beyond all": (
        lambda f: f.program["constants"][0].update(shape=[1 << 40] * 40), "bytes, there are"
    ),
    "a constant of a negative size": (
        lambda f: f.program["constants"][0].update(shape=[-4]), "shape[0]: expected a number"
    ),
    "a constant of no dtype": (
        lambda f: f.program["constants"][0].update(dtype="object"), "there is no dtype 'object'"
    ),
    "a jump out of the function": (
        lambda f: first(f, **{"is": "Jump", "target": 10**6}), "instruction 1000000 of"
    ),
    "a call of no function": (
        lambda f: first(f, **{"is": "CallFunction", "dst": 0, "function": 9, "args": []}),
        "function 9 of",
    ),
    "a call without arguments": (
        lambda f: first(f, **{"is": "CallFunction", "dst": 0, "function": 1, "args": []}),
        "plain takes 1, got 0",
    ),
    "a symbol that is not there": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(0, {"is": "Slot", "index": 44}),
        "symbol 44 of",
    ),
    "a symbol that nothing binds": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(0, 3), "is not set before it is"
    ),
    "a symbol that no size tells": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(
            0, {"is": "SizeOp", "op": "min", "a": {"is": "Slot", "index": 0}, "b": 9}),
        "no size of a parameter tells",
    ),
    "a check that binds what it doesn't tell": (
        lambda f: first(f, **{
            "is": "Match", "value": 0, "binds": [0], "known": {"is": "ObjectSpec"}, "name": "x",
            "spec": {"is": "TensorSpec", "dtype": None, "shape": [3]}}),
        "it binds a symbol that no size tells",
    ),
    "a division by 0": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(
            1, {"is": "SizeOp", "op": "floordiv", "a": {"is": "Slot", "index": 0}, "b": 0}),
        "a division by 0",
    ),
    "an operation that is none": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(
            1, {"is": "SizeOp", "op": "pow", "a": 9, "b": 9}), "expected one of add, sub, mul",
    ),
    "a size of many levels": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(1, deep(300)), "too deeply"
    ),
    "a size that is larger than all": (
        lambda f: f.main["params"][0]["spec"]["shape"].__setitem__(1, HUGE), "got a larger one"
    ),
    "a rank beyond numpy's": (
        lambda f: f.main["result"].update(shape=None, rank=10**6), "rank: expected a number from 0"
    ),
    "a tuple that is none": (
        lambda f: f.main["params"][0].update(registers=[0, 1]), "registers for a tuple, which it is"
    ),
    "a parameter's register that is not there": (
        lambda f: f.main["params"][0].update(registers=10**4), "register 10000 of"
    ),
    "a multiple of 0": (
        lambda f: f.main["symbols"][0].update(multiple_of=0), "multiple_of: expected a number from"
    ),
    "a symbol without values": (
        lambda f: f.main["symbols"][0].update(min=4, max=3), "the symbol 'n' has no values"
    ),
    "captures of more than there is": (
        lambda f: f.main.update(captured=10**6), "captured register 1000000"
    ),
    "a parameter that is given away and is not there": (
        lambda f: f.main.update(aliases=[[0, 7]]), "parameter 7 of 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MANIFEST)
def test_a_forged_manifest_is_refused(case: str, content: bytes, tmp_path: Path) -> None:
    change, message = MANIFEST[case]
    assert message in refused(forged(content, change), tmp_path)


@pytest.mark.parametrize("case", PROGRAMS)
def test_forged_bytecode_is_refused(case: str, content: bytes, tmp_path: Path) -> None:
    change, message = PROGRAMS[case]
    assert message in refused(forged(content, change), tmp_path)
