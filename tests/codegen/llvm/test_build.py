"""Object code: the disk cache, modules compiled side by side, listings, other targets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import HOST, run
from tests.codegen.llvm.test_arithmetic import elementwise
from tests.codegen.llvm.test_math import call
from unity.codegen.llvm import compile_kernels, default_folder
from unity.codegen.llvm.cache import ObjectCache
from unity.codegen.llvm.child import compile_in_child
from unity.codegen.llvm.host import host_target, vector_shape
from unity.codegen.llvm.machine import compile_text, feature_text
from unity.errors import UnsupportedError
from unity.ir.attrs import Attrs
from unity.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64
from unity.ir.prim_expr import Broadcast, Intrinsic, Load, PrimExpr, PrimVar, Ramp, SizeVar, imm
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, PrimFunc, Seq, Store
from unity.machine.target import Target
from unity.runtime.host import host_features
from unity.script import parse

N = SizeVar("n")


def gelu(lanes: int = 16) -> PrimFunc:
    def value(x: PrimExpr) -> PrimExpr:
        return x * call("erf")(x) + call("exp")(x)

    return elementwise(value, [FLOAT32], FLOAT32, lanes)


def picked() -> PrimFunc:
    """Elements that a table names: nothing proves that they are there."""
    return parse("""
@script.prim_func
def main(a: f32[Buffer, 8], at: i64[Buffer, 8], c: f32[Buffer, 8]) -> None:
    for i in range(8):
        c[i] = a[at[i]]
""").prim_funcs()["main"]


def total(kind: str = "serial") -> PrimFunc:
    """A sum over rows: a scalar loop that LLVM is to vectorize."""
    x, y, i, j = (
        Buffer("x", (N, imm(256)), FLOAT32),
        Buffer("y", (N,), FLOAT32),
        PrimVar("i"),
        PrimVar("j"),
    )
    s = Buffer("s", (imm(1),), FLOAT32, scope="local")
    zero = imm(0)
    update = Store(s, (zero,), Load(s, (zero,)) + Load(x, (i * imm(256) + j,)))
    row = Seq(
        (
            Store(s, (zero,), imm(0.0, FLOAT32)),
            For(j, zero, imm(256), update),
            Store(y, (i,), Load(s, (zero,))),
        )
    )
    return PrimFunc((x, y), For(i, zero, N, Allocate(s, row), "parallel"))


def fetching() -> PrimFunc:
    """A copy that fetches what comes later, beyond the end as well."""
    x, y, i = Buffer("x", (N,), FLOAT32), Buffer("y", (N,), FLOAT32), PrimVar("i")
    later = Intrinsic("prefetch", (Load(x, (i + imm(64),)),), FLOAT32)
    return PrimFunc(
        (x, y), For(i, imm(0), N, Seq((Evaluate(later), Store(y, (i,), Load(x, (i,))))))
    )


def test_reductions_of_scalar_loops_are_vectorized() -> None:
    listing = compile_kernels({"k": total()}, HOST).listing("k")
    assert "llvm.vector.reduce.fadd" in listing.optimized
    assert "x float]" not in listing.optimized
    x = np.ones((300, 256), np.float32)
    np.testing.assert_array_equal(run(total(), [x], np.zeros(300, np.float32), {"n": 300}), 256.0)


@pytest.mark.skipif(not HOST.has("avx512f"), reason="about zmm registers")
def test_vectors_are_as_wide_as_the_machine() -> None:
    assert "zmm" in compile_kernels({"k": total()}, HOST).asm("k")
    assert "zmm" in compile_kernels({"k": gelu()}, HOST).asm("k")


def test_no_call_of_a_c_library_is_left() -> None:
    assembly = compile_kernels({"k": gelu()}, HOST).asm("k")
    assert "call" not in assembly.replace("callq\tk.body", "").replace("k.body", "")


def test_buffers_do_not_alias_unless_told() -> None:
    assert "ptr noalias readonly %p0, ptr noalias %p1" in compile_kernels({"k": gelu()}, HOST).llvm(
        "k"
    )
    func = gelu()
    shared = PrimFunc(func.params, func.body, Attrs(noalias=False))
    assert "noalias %p" not in compile_kernels({"k": shared}, HOST).llvm("k")


def test_kernels_compiled_side_by_side_are_the_same() -> None:
    funcs = {f"k{i}": elementwise(lambda x, i=i: x + imm(float(i), FLOAT32), [FLOAT32], FLOAT32, 8)
             for i in range(9)}  # fmt: skip
    alone, beside = (compile_kernels(funcs, HOST, None, t) for t in (1, 2))
    assert len(alone.objects) == 9 + 1  # and the one with the limit of threads
    assert alone.kernels == beside.kernels


def test_kernels_of_one_symbol_are_compiled_once() -> None:
    code = compile_kernels({"a": gelu(), "b": gelu()}, HOST, symbols={"a": "same", "b": "same"})
    assert code.symbols == {"a": "same", "b": "same"}
    assert len(code.objects) == 1 + 1


def test_the_cache_keeps_and_mends_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    funcs = {"k": picked()}
    first = compile_kernels(funcs, HOST, tmp_path)
    monkeypatch.setattr("unity.codegen.llvm.build.compile_text", None)
    assert compile_kernels(funcs, HOST, tmp_path).objects == first.objects
    monkeypatch.undo()
    for entry in tmp_path.rglob("*.o"):
        data = bytearray(entry.read_bytes())
        data[-1] ^= 1
        entry.write_bytes(bytes(data))
    assert compile_kernels(funcs, HOST, tmp_path).objects == first.objects
    store = ObjectCache(tmp_path / "objects")
    kept = [store.get(e.parent.name + e.stem) for e in tmp_path.rglob("*.o")]
    assert first.objects[0] in kept
    assert compile_kernels(funcs, HOST, tmp_path, checks=True).objects != first.objects


def test_the_cache_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    store = ObjectCache(tmp_path, limit=350)
    for k, name in enumerate(("aa1", "bb2", "cc3")):
        store.put(name, bytes(100))
        os.utime(next(tmp_path.rglob(f"{name[2:]}.o")), (k, k))
    assert store.get("aa1") == bytes(100)  # used just now
    store.trim()
    assert store.get("bb2") is None
    assert store.get("aa1") is not None
    assert store.get("cc3") is not None


def test_what_killed_writers_left_goes(tmp_path: Path) -> None:
    store = ObjectCache(tmp_path)
    store.put("aa1", bytes(100))
    left, written = tmp_path / "aa" / "tmpx.tmp", tmp_path / "aa" / "tmpy.tmp"
    for path in (left, written):
        path.write_bytes(b"half")
    hours_ago = written.stat().st_mtime - 7200
    os.utime(left, (hours_ago, hours_ago))
    store.trim()
    assert not left.exists()
    assert written.exists()
    assert store.get("aa1") == bytes(100)


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert compile_kernels({"k": gelu()}, HOST, file).objects


LINUX = "x86_64-unknown-linux-gnu"
AVX512 = ("avx512f", "avx512vl", "avx512bw", "avx512dq")
TARGETS = [
    Target("cpu", LINUX, "haswell", ("avx2", "f16c", "fma", "sse4.1"), 256, 16),
    Target("cpu", LINUX, "nehalem", ("sse4.1", "sse4.2"), 128, 16),
    Target("cpu", LINUX, "x86-64", ("sse2",), 128, 16),
    Target("cpu", LINUX, "znver4", (*AVX512, "f16c", "fma", "sse4.1"), 512, 32),
    Target("cpu", "aarch64-unknown-linux-gnu", "cortex-a72", ("neon",), 128, 32),
    Target("cpu", "riscv64-unknown-linux-gnu", "generic-rv64", ("d", "f", "m", "a", "c"), 128, 32),
    Target("cpu", "wasm32-unknown-unknown", "generic", ("simd128",), 128, 16),
]  # fmt: skip


@pytest.mark.rotated(6)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.triple.split('-')[0]}-{t.cpu}")
def test_every_intrinsic_and_dtype_compiles_for_other_machines(target: Target) -> None:
    """Nothing is emitted that the target cannot select, nor calls into libm."""
    funcs = {
        f"{name}_{d}_{lanes}": elementwise(call(name), [d] * arity, d, lanes)
        for d, lanes in ((FLOAT32, 8), (FLOAT64, 4), (FLOAT32, 1), (FLOAT16, 8), (BFLOAT16, 8))
        for name, arity in (
            ("exp", 1),
            ("sin", 1),
            ("erf", 1),
            ("pow", 2),
            ("round", 1),
            ("log1p", 1),
        )
    }
    funcs["sum"] = total()
    funcs["ahead"] = fetching()
    funcs["pow_int"] = elementwise(call("pow"), [INT64, INT64], INT64, 4)
    code = compile_kernels(funcs, target)
    assert code.objects
    for data in (*code.objects, code.pool):
        names = {b"expf", b"exp2f", b"rintf", b"roundevenf", b"roundeven", b"floorf", b"floor",
                 b"__truncsfhf2", b"__extendhfsf2", b"__truncsfbf2", b"fmaf", b"fma", b"ldexpf",
                 b"powf", b"sinf"}  # fmt: skip
        assert not names & set(data.split(b"\0"))


@pytest.mark.parametrize(
    ("target", "instruction"), [(TARGETS[0], "prefetcht1"), (TARGETS[4], "prfm")]
)
def test_fetching_ahead_is_one_instruction(target: Target, instruction: str) -> None:
    assert instruction in compile_kernels({"ahead": fetching()}, target).listing("ahead").assembly


def test_code_that_a_target_cannot_express_is_an_error_not_a_crash() -> None:
    text = "define void @f() {\n  call void @llvm.x86.tilerelease()\n  ret void\n}\n"
    with pytest.raises(UnsupportedError, match="cannot generate this code"):
        compile_in_child(text, TARGETS[2], "short")


def test_text_that_is_no_ir_is_named() -> None:
    with pytest.raises(RuntimeError, match="parsing error"):
        compile_text("define nonsense", HOST, "short")


def test_the_host_is_described() -> None:
    target = host_target(threads=3)
    assert target.threads == 3
    assert target.features == tuple(sorted(target.features))
    assert (target.vector_bits, target.vector_registers) == vector_shape(
        target.triple, target.features
    )
    assert 8 << 10 <= target.l1_bytes <= target.l2_bytes
    assert host_target().threads == len(os.sched_getaffinity(0))


def test_accumulators_of_vector_code_live_in_registers() -> None:
    """A local buffer at constant indices, across a real loop, with the short list of passes."""
    x, y, k = Buffer("x", (N,), FLOAT32), Buffer("y", (imm(32),), FLOAT32), PrimVar("k")
    acc = Buffer("acc", (imm(32),), FLOAT32, scope="local")
    parts = [Ramp(imm(at), imm(1), 16) for at in (0, 16)]
    body = Seq(
        (
            *(Store(acc, (p,), Broadcast(imm(0.0, FLOAT32), 16)) for p in parts),
            For(k, imm(0), N, Seq(tuple(
                Store(acc, (p,), Load(acc, (p,)) + Load(x, (Ramp(k * imm(16), imm(1), 16),)))
                for p in parts))),
            *(Store(y, (p,), Load(acc, (p,))) for p in parts),
        )
    )  # fmt: skip
    listing = compile_kernels({"k": PrimFunc((x, y), Allocate(acc, body))}, HOST).listing("k")
    assert "alloca" not in listing.optimized


def test_what_the_host_lacks_is_ruled_out() -> None:
    """The name of a cpu implies features that this machine may lack."""
    lacking = [f for f, on in host_features().items() if not on]
    text = feature_text(HOST.features)
    assert all(f"-{f}" in text.split(",") for f in lacking)
    assert feature_text(("avx2", "fma")) == "+avx2,+fma"


def test_the_environment_says_where_the_cache_lies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNITY_CACHE_DIR", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("UNITY_CACHE_DIR")
    assert default_folder() == Path.home() / ".cache" / "unity"
