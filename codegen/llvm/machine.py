"""LLVM as a function: a module's text in, object bytes, optimized text or assembly out.

llvmlite serializes all calls with one lock. The long ones (optimize, emit) release the GIL and
touch one context only, so with a private context a thread they may run at the same time: they are
called on the library's handle, past the lock. Where there is no such handle, the locked calls do.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from unity.machine.target import Target
from unity.runtime.host import host_features, host_triple

Level: TypeAlias = Literal["short", "full"]
"""``short``: a few passes, for code vectorized and unrolled by us. ``full``: LLVM's O2."""

_started = threading.Lock()
_CALLS = (
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
    "LLVMPY_ParseAssembly",
)


@lru_cache(maxsize=1)
def start() -> None:
    """Make LLVM ready to generate code for every target it has, once."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


@lru_cache(maxsize=1)
def _unlocked() -> dict[str, Callable[..., int]]:
    """The long calls without llvmlite's lock; empty where that cannot be had."""
    handle = getattr(ffi.lib, "_lib_handle", None)
    if handle is None:
        return {}
    return {name: getattr(handle, name) for name in _CALLS}


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a module."""

    object: bytes
    optimized: str | None = None
    assembly: str | None = None


def data_layout(target: Target) -> str:
    """LLVM's data layout of a target."""
    return _layout(target.triple, target.cpu, target.features)


@lru_cache(maxsize=16)
def _layout(triple: str, cpu: str, features: tuple[str, ...]) -> str:
    with _started:
        start()
    return str(_machine(triple, cpu, features).target_data)


def feature_text(features: tuple[str, ...]) -> str:
    """Features as LLVM reads them.

    For this machine with those it lacks too: a cpu's name implies features that a hypervisor, or
    an older machine of the same tuning, may not have.
    """
    known = host_features()
    if features == tuple(sorted(f for f, on in known.items() if on)):
        return ",".join(f"{'+' if on else '-'}{f}" for f, on in sorted(known.items()))
    return ",".join(f"+{f}" for f in features)


def _machine(triple: str, cpu: str, features: tuple[str, ...]) -> llvm.TargetMachine:
    """A new target machine (cheap; one a thread, as they must not be shared)."""
    host = triple == host_triple()
    given = feature_text(features)
    if triple.startswith("x86_64"):
        # Without the first two LLVM ends the process, or calls atomics that nobody has. With SSE4a
        # it shuffles bytes by `insertq`, which AVX does not encode: 80 times as slow.
        given += ",+64bit,+cx8,-sse4a"
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu,
        features=given,
        opt=3,
        reloc="pic",
        codemodel="small" if host else "default",
        jit=False,
    )


def compile_text(text: str, target: Target, level: Level, *, listings: bool = False) -> Compiled:
    """Compile a module's text.

    Args:
        text: LLVM IR without layout and triple.
        target: What to generate code for.
        level: Which passes to run.
        listings: Whether to return the optimized IR and the assembly as well.

    Raises:
        RuntimeError: The text is not valid LLVM IR.
    """
    header = f'target datalayout = "{data_layout(target)}"\ntarget triple = "{target.triple}"\n'
    context = llvm.create_context()
    machine = _machine(target.triple, target.cpu, target.features)
    module = llvm.parse_assembly(header + text, context)
    module.verify()
    _optimize(module, machine, level)
    optimized = str(module) if listings else None
    assembly = machine.emit_assembly(module.clone()) if listings else None
    return Compiled(_emit(module, machine), optimized, assembly)


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: Level) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.slp_vectorization = False  # never relied on: vectors are made by schedules
    builder = llvm.create_pass_builder(machine, options)
    if level == "full":
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_dead_code_elimination_pass()
        passes.add_global_dead_code_eliminate_pass()
    raw = _unlocked().get("LLVMPY_RunNewModulePassManager")
    try:
        if raw is None:
            passes.run(module, builder)
        else:
            raw(passes, module, builder)
    finally:
        _dispose(passes)


def _dispose(passes: llvm.ModulePassManager) -> None:
    """Free a pass manager and what its passes keep: 0.1 MiB.

    llvmlite doesn't: of the two ``_dispose`` that the class inherits, the empty one comes first.
    """
    if not passes.closed:
        ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
        passes.detach()


def _emit(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
    raw = _unlocked().get("LLVMPY_TargetMachineEmitToMemory")
    if raw is None:
        return machine.emit_object(module)
    with ffi.OutputString() as error:
        buffer = raw(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        start_ = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start_, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
