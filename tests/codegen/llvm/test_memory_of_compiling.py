"""Compiling gives back what LLVM took for it."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from unity.codegen.llvm import host_target, machine
from unity.codegen.llvm.machine import Level, compile_text
from unity.runtime.trim import trim

TEXT = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n"
RESIDENT = Path("/proc/self/statm")
PAGE = 4 << 10


@pytest.mark.parametrize("level", ["short", "full"])
def test_pass_managers_are_freed(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[llvm.ModulePassManager] = []

    def run(passes: llvm.ModulePassManager, module: llvm.ModuleRef, by: llvm.PassBuilder) -> int:
        seen.append(passes)
        passes.run(module, by)
        return 0

    monkeypatch.setattr(machine, "_unlocked", lambda: {"LLVMPY_RunNewModulePassManager": run})
    assert compile_text(TEXT, host_target(), level).object
    assert [passes.closed for passes in seen] == [True]


@pytest.mark.skipif(not RESIDENT.exists(), reason="the system doesn't tell")
def test_memory_does_not_grow_with_compiles() -> None:
    def resident() -> int:
        trim()
        return int(RESIDENT.read_text().split()[1]) * PAGE

    target = host_target()
    for _ in range(5):
        compile_text(TEXT, target, "full")
    before = resident()
    for _ in range(40):  # each left 30 KiB or more behind
        compile_text(TEXT, target, "full")
    assert (resident() - before) / 40 < 12 << 10
