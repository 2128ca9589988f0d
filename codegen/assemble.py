"""The last step: a lowered module's kernels and functions as an executable in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unity.codegen import export
from unity.codegen.engine.kernel import engine_code
from unity.codegen.foreign_code import foreign_code
from unity.codegen.llvm import ObjectCode
from unity.codegen.llvm.build import compile_cached
from unity.codegen.llvm.cache import FOLDER as OBJECTS
from unity.codegen.llvm.cache import ObjectCache
from unity.codegen.lower import Kernels, Lowered
from unity.codegen.vm.alignment import with_aligned_constants
from unity.codegen.vm.build import build_program
from unity.codegen.vm.native.module import NativeText, native_text
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.runtime.artifact.match import why_unfit
from unity.runtime.bytecode import Program
from unity.runtime.executable import Executable
from unity.runtime.image import Image, Option
from unity.runtime.instantiate import instantiate
from unity.runtime.native import supported

if TYPE_CHECKING:
    from unity.transform.rules.decisions import Decisions
    from unity.transform.schedule import AppliedRule, Schedule


def assemble(
    lowered: Lowered,
    explanation: str = "",
    options: Mapping[str, Option] | None = None,
) -> Executable:
    """Compile, link and wrap a lowered module.

    Args:
        lowered: Planned graph functions and lowered prim funcs, for this machine.
        explanation: What call sites were resolved to, as JSON.
        options: What was asked for, to be told of an artifact.
    """
    module = with_aligned_constants(lowered.module)
    target, cache = lowered.kernels.ctx.target, lowered.kernels.cache
    built = build_program(module)
    names = [k.name for k in built.program.kernels if not k.engine]
    funcs = {name: func for name, func in module.prim_funcs().items() if name in names}
    code = lowered.kernels.compile(funcs)
    program = _with_code(built.program, code)
    native = native_text(program, target.triple) if supported() else None
    native_object = b""
    if native is not None and native.info.functions:
        store = None if cache is None else ObjectCache(cache / OBJECTS)
        native_object = compile_cached(native.text, target, "short", store)
    foreign = foreign_code(funcs, here=why_unfit(target) is None)
    called = {k.name for k in program.kernels}
    engines = {n: f for n, f in module.engine_functions().items() if n in called}
    image = Image(
        program=program,
        target=target,
        objects=code.objects,
        pool=code.pool,
        constants=built.constants,
        hosts=built.hosts,
        native=None if native is None else native.info,
        native_object=native_object,
        symbols=foreign.symbols,
        libraries=foreign.libraries,
        engines=tuple(engine_code(name, f, target) for name, f in engines.items()),
        explanation=explanation,
        options=options or {},
    )
    return instantiate(image, listings=Sources(module, lowered.kernels, code, native))


@dataclass(frozen=True, slots=True)
class Sources:
    """What was compiled, as people read it."""

    module: IRModule
    kernels: Kernels
    code: ObjectCode
    native: NativeText | None

    def ir(self, kernel: str | None = None) -> str:
        """The lowered module, or one kernel of it, in the language."""
        from unity.script import print_module

        shown = self.module if kernel is None else IRModule({kernel: self.module[kernel]})
        whole = {n: self.kernels.whole(n, f) for n, f in shown.prim_funcs().items()}
        return print_module(shown.with_(whole))

    def llvm(self, kernel: str | None = None) -> str:
        """The LLVM IR of all kernels and native functions, or of one kernel."""
        if kernel is not None:
            return self.code.llvm(kernel)
        texts = [self.code.llvm(name) for name in self.code.functions]
        return "\n".join([*texts, *([self.native.text] if self.native is not None else [])])

    def asm(self, kernel: str | None = None) -> str:
        """The assembly of all kernels, or of one."""
        names = list(self.code.functions) if kernel is None else [kernel]
        return "\n".join(self.code.asm(name) for name in names)

    def kernel(self, kernel: str) -> PrimFunc:
        """A kernel before it is laid out."""
        return self.kernels.unscheduled.kernel(kernel, self.kernels.ctx)

    def schedule(self, kernel: str, decisions: Decisions | None) -> Schedule:
        """What the default rules do to it."""
        from unity.transform.schedule import default_schedule  # every rule: long to import

        ctx, before = self.kernels.ctx, self.kernels.unscheduled
        taken = before.decisions(kernel, ctx, decisions)
        return default_schedule(before.kernel(kernel, ctx), ctx.target, taken)

    def rules(self, kernel: str, decisions: Decisions | None) -> tuple[AppliedRule, ...]:
        """Which of them take which of its blocks."""
        from unity.transform.schedule import default_rules

        ctx, before = self.kernels.ctx, self.kernels.unscheduled
        taken = before.decisions(kernel, ctx, decisions)
        return default_rules(before.kernel(kernel, ctx), ctx.target, taken)

    def export_library(self, image: Image, path: Path, threads: int) -> Path:
        """A shared library and a header for C; where the header is."""
        return export.export_library(image, path, threads)


def _with_code(program: Program, code: ObjectCode) -> Program:
    """The program, its kernels with what the code generator tells of them."""
    kernels = tuple(
        k
        if k.engine
        else replace(k, messages=code.kernels[k.name].messages, symbol=code.kernels[k.name].symbol)
        for k in program.kernels
    )
    return replace(program, kernels=kernels)
