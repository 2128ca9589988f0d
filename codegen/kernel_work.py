"""A kernel's way into the cache: lowered by itself, compiled and stored, in whichever process.

What comes in is a kernel as it is before the tail of the pipeline (`unity.transform.tail`); what
the cache has then is what `unity.codegen.lower` would put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unity.codegen.kernel_cache import CachedKernel, KernelCache
from unity.codegen.llvm.build import compile_kernel
from unity.ir.module import IRModule
from unity.ir.stmt import Buffer, PrimFunc
from unity.transform import Context, Pass, Pipeline
from unity.transform.tail import Tail


def symbol_of(identity: str, *, may_alias: bool) -> str:
    """What the function of a kernel with this fingerprint is called, the same in every module."""
    return f"kernel_{identity[:32]}{'_aliased' if may_alias else ''}"


@dataclass(slots=True)
class Temporaries:
    """An instrument that notes the buffers which kernels are given besides their own."""

    kernels: Mapping[str, PrimFunc]
    added: dict[str, tuple[Buffer, ...]] = field(default_factory=dict[str, tuple[Buffer, ...]])

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Nothing."""

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Note them where they appear: later passes change their shapes."""
        for name, func in self.kernels.items():
            now = module.functions.get(name)
            if isinstance(now, PrimFunc) and name not in self.added:
                more = now.buffers[len(func.buffers) :]
                if more:
                    self.added[name] = more


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What becomes of kernels.

    Attributes:
        store: Where they are put.
        tail: The passes that lower them.
        ctx: What passes are given.
        checks: Whether accesses are checked.
    """

    store: KernelCache
    tail: Tail
    ctx: Context
    checks: bool

    def do(self, name: str, func: PrimFunc, identity: str) -> None:
        """Lower, compile and store a kernel whose outputs do not lie in its inputs.

        Args:
            name: What it is called.
            func: The kernel before the tail.
            identity: Its fingerprint.

        Raises:
            UnityError: A pass refuses it, or it uses what has no code.
        """
        watch = Temporaries({name: func})
        ctx = replace(self.ctx, instruments=(watch,))
        lowered = Pipeline(self.tail.steps).run(IRModule({name: func}), ctx)[name]
        assert isinstance(lowered, PrimFunc)
        added = watch.added.get(name, ())
        if len(lowered.buffers) != len(func.buffers) + len(added):
            return
        symbol = symbol_of(identity, may_alias=False)
        target, folder = self.ctx.target, self.store.folder
        code = compile_kernel(lowered, symbol, target, folder, checks=self.checks)
        self.store.put(identity, func, CachedKernel(code, added), may_alias=False)


def import_all() -> None:
    """Import what the first kernel would."""
    from unity.codegen.llvm import kernel
    from unity.transform.rules import default

    del kernel, default
