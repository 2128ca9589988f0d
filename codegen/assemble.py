"""The last step: a lowered module's kernels and functions as an executable in this process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from unity.codegen.engine.kernel import EngineKernel
from unity.codegen.llvm import ObjectCode, compile_kernels
from unity.codegen.llvm.build import compile_cached
from unity.codegen.llvm.cache import ObjectCache
from unity.codegen.vm.alignment import with_aligned_constants
from unity.codegen.vm.build import build_program
from unity.codegen.vm.native import NativeText, native_text
from unity.ir.foreign import foreign_symbols
from unity.ir.module import IRModule
from unity.ir.target import Target
from unity.runtime.executable import Executable, Parts, native_kernel
from unity.runtime.foreign import address
from unity.runtime.link import link, thread_pool
from unity.runtime.native import NativeCode, supported
from unity.runtime.program import Program
from unity.runtime.threads import LIMIT_SYMBOL, Threads


def assemble(
    module: IRModule,
    target: Target,
    cache: Path | None,
    *,
    checks: bool = False,
    explanation: str = "",
) -> Executable:
    """Compile, link and wrap a lowered module.

    Args:
        module: Planned graph functions and lowered prim funcs.
        target: This machine.
        cache: The folder of the disk cache, None for none.
        checks: Whether accesses of kernels are checked.
        explanation: What call sites were resolved to, as JSON.
    """
    module = with_aligned_constants(module)
    built = build_program(module)
    names = [k.name for k in built.program.kernels if not k.engine]
    funcs = {name: func for name, func in module.prim_funcs().items() if name in names}
    code = compile_kernels(funcs, target, cache, target.threads, checks=checks)
    program = _with_messages(built.program, code)
    native = native_text(program, target.triple) if supported() else None
    objects = list(code.objects)
    exports = [code.symbols[name] for name in names]
    if native is not None and native.exports:
        store = None if cache is None else ObjectCache(cache / "objects")
        objects.append(compile_cached(native.text, target, "short", store))
        exports += native.exports
    pool = thread_pool(code.pool)
    foreign = {s: address(s) for f in funcs.values() for s in foreign_symbols(f)}
    count = _Count(target.threads)
    engines = {
        name: EngineKernel(name, f, target, count)
        for name, f in module.engine_functions().items()
        if name in {k.name for k in program.kernels}
    }
    foreign.update((name, kernel.address) for name, kernel in engines.items())
    library = link(objects, [*exports, LIMIT_SYMBOL], {**pool.addresses, **foreign})
    threads = count.threads = Threads(pool, library, target.threads)
    kernels = tuple(
        engines[k.name] if k.engine else native_kernel(library[code.symbols[k.name]], k)
        for k in program.kernels
    )
    return Executable(
        Parts(
            program,
            kernels,
            built.constants,
            built.hosts,
            None if native is None else NativeCode(library, native.info, built.constants),
            Sources(module, code, native),
            library=library,
            threads=threads,
            explanation=explanation,
        )
    )


@dataclass(slots=True)
class _Count:
    """How many threads the executable uses, which engines ask at every call."""

    first: int
    threads: Threads | None = None

    def __call__(self) -> int:
        return self.first if self.threads is None else self.threads.count


@dataclass(frozen=True, slots=True)
class Sources:
    """The texts of what was compiled."""

    module: IRModule
    code: ObjectCode
    native: NativeText | None

    def ir(self, kernel: str | None = None) -> str:
        """The lowered module, or one kernel of it, in the language."""
        from unity.script import print_module

        if kernel is None:
            return print_module(self.module)
        return print_module(IRModule({kernel: self.module[kernel]}))

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


def _with_messages(program: Program, code: ObjectCode) -> Program:
    """The program, its kernels' asserts numbered as the code generator did."""
    kernels = tuple(
        k if k.engine else replace(k, messages=code.messages[k.name]) for k in program.kernels
    )
    return replace(program, kernels=kernels)
