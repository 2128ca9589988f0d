"""A module lowered, kernels that were compiled before left out.

The pipeline is cut where each kernel goes its own way (`unity.transform.tail`). There kernels are
looked up in the cache (`kernel_cache`): of those found, a signature goes down the rest of the
pipeline, an empty prim func with the parameters and the temporaries that the schedule would leave.
What is asked of them later, their IR or their assembly, is lowered then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from unity.codegen.kernel_cache import CachedKernel, KernelCache, setting_of
from unity.codegen.kernel_work import KernelWork, Temporaries, symbol_of
from unity.codegen.llvm import ObjectCode, compile_kernels
from unity.codegen.llvm.build import KernelCode
from unity.codegen.llvm.cache import key_of
from unity.codegen.llvm.known import require_known
from unity.codegen.unscheduled import BeforeSchedule, Unscheduled
from unity.codegen.workers.crew import Crew
from unity.ir.fingerprint import fingerprint
from unity.ir.foreign import foreign_symbols
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, Buffer, PrimFunc, Seq, Stmt
from unity.transform import Context, Pipeline
from unity.transform.graph.lower.share_kernels import share_kernels
from unity.transform.scheduled import as_scheduled
from unity.transform.tail import Tail, split


def lower(
    module: IRModule,
    passes: Pipeline,
    ctx: Context,
    cache: Path | None,
    *,
    checks: bool = False,
    processes: int = 1,
) -> Lowered:
    """Run a pipeline on a module.

    Args:
        module: What to lower.
        passes: The pipeline.
        ctx: What passes are given. Where instruments look on, every kernel is lowered.
        cache: The folder of the disk cache, None for none.
        checks: Whether accesses of kernels will be checked.
        processes: How many processes may lower and compile kernels, where there is a cache.
    """
    require_known(ctx.target)
    head, tail = split(passes)
    noted = BeforeSchedule()
    noting = replace(ctx, instruments=(*ctx.instruments, noted))
    if cache is None or ctx.instruments or not tail.steps:
        module = passes.run(module, noting)
        return Lowered(module, Kernels(ctx, cache, checks, noted.found()))
    store = KernelCache(cache, setting_of(tail.identity, ctx.target, checks=checks))
    with closing(Crew(KernelWork(store, tail, ctx, checks), processes)) as crew:
        crew.expect(module)
        module = head.run(module, noting)
        funcs = {n: f for n, f in module.prim_funcs().items() if not foreign_symbols(f)}
        identities = {name: fingerprint(func) for name, func in funcs.items()}
        module = share_kernels(module, identities)
        funcs = {name: func for name, func in funcs.items() if name in module}
        before = noted.found()
        if noted.kernels is None:
            before = Unscheduled.of_tail(module.prim_funcs(), tail)
        found = {name: _found(store, identities[name], func) for name, func in funcs.items()}
        missing = {
            name: (funcs[name], identities[name])
            for name, kernel in found.items()
            if kernel is None and "overwritable" not in funcs[name].attrs  # it may yet alias
        }
        crew.compile(missing)
    found |= {name: _found(store, identity, func) for name, (func, identity) in missing.items()}
    known = {name: kernel for name, kernel in found.items() if kernel is not None}
    module = module.with_({name: _signature(funcs[name], k) for name, k in known.items()})
    watch = Temporaries({name: f for name, f in funcs.items() if name not in known})
    module = Pipeline(tail.passes).run(module, replace(ctx, instruments=(watch,)))
    lookup = _Lookup(store, tail, funcs, identities, known, watch.added)
    return Lowered(module, Kernels(ctx, cache, checks, before, lookup))


def _found(store: KernelCache, identity: str, func: PrimFunc) -> CachedKernel | None:
    """What the cache has of a kernel, in whichever of its two forms."""
    plain = store.get(identity, func, may_alias=False)
    return plain or store.get(identity, func, may_alias=True)


def _signature(func: PrimFunc, known: CachedKernel) -> PrimFunc:
    """What passes that see signatures have to see of a kernel."""
    body: Stmt = Seq(())
    for buffer in reversed(known.temporaries):
        body = Allocate(buffer, body)
    return as_scheduled(replace(func, body=body))


@dataclass(frozen=True, slots=True)
class _Lookup:
    """What was asked of the cache, by the kernels' names.

    Attributes:
        funcs: The kernels before the tail.
        identities: Their fingerprints.
        known: Those that were found.
        temporaries: What the others are handed besides their own buffers.
    """

    store: KernelCache
    tail: Tail
    funcs: Mapping[str, PrimFunc]
    identities: Mapping[str, str]
    known: Mapping[str, CachedKernel]
    temporaries: Mapping[str, tuple[Buffer, ...]]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A lowered module.

    Attributes:
        module: The module; of kernels whose code is known it has signatures.
        kernels: The kernels' code and whole text.
    """

    module: IRModule
    kernels: Kernels


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of a lowered module: those that were found, and how to make the others.

    Attributes:
        ctx: What passes were given.
        cache: The folder of the disk cache.
        checks: Whether accesses are checked.
        unscheduled: The kernels before their schedule.
        lookup: What was found; None where the cache was not asked.
    """

    ctx: Context
    cache: Path | None
    checks: bool
    unscheduled: Unscheduled
    lookup: _Lookup | None = None

    def whole(self, name: str, func: PrimFunc) -> PrimFunc:
        """A lowered kernel, given what the module has of it: lowered again if but a signature."""
        if self.lookup is None or name not in self.lookup.known:
            return func
        lowered = self.lookup.tail.lowered(name, self.lookup.funcs[name], self.ctx)
        return replace(lowered, attrs=func.attrs)

    def compile(self, funcs: Mapping[str, PrimFunc]) -> ObjectCode:
        """The code of kernels, given what the module has of them."""
        found = {name: self._ready(name, func) for name, func in funcs.items()}
        ready = {name: code for name, code in found.items() if code is not None}
        missing = {n: self.whole(n, f) for n, f in funcs.items() if n not in ready}
        symbols = {name: self._symbol(name, func) for name, func in missing.items()}
        target = self.ctx.target
        made = compile_kernels(
            missing, target, self.cache, target.threads, checks=self.checks, symbols=symbols
        )
        for name, func in missing.items():
            self._keep(name, func, made.kernels[name])
        if self.lookup is not None and missing:
            self.lookup.store.trim()
        kernels = {name: ready.get(name) or made.kernels[name] for name in funcs}
        return replace(made, kernels=kernels, functions=_Whole(self, funcs))

    def _ready(self, name: str, func: PrimFunc) -> KernelCode | None:
        """The code of a kernel if it was found, and may do what the plan of memory lets it."""
        known = None if self.lookup is None else self.lookup.known.get(name)
        if self.lookup is None or known is None:
            return None
        aliased = _may_alias(func)
        if known.code.symbol != self._symbol(name, func):
            identity = self.lookup.identities[name]
            known = self.lookup.store.get(identity, self.lookup.funcs[name], may_alias=aliased)
        return None if known is None else known.code

    def _symbol(self, name: str, func: PrimFunc) -> str:
        """What a kernel's function is called: the same in every module if kernels are looked up.

        Its own name could be one that the libraries linked with it have.
        """
        if self.lookup is None or name not in self.lookup.identities:
            return f"kernel_{key_of(name)[:32]}"
        return symbol_of(self.lookup.identities[name], may_alias=_may_alias(func))

    def _keep(self, name: str, func: PrimFunc, code: KernelCode) -> None:
        """Put a compiled kernel into the cache."""
        if self.lookup is None or name not in self.lookup.funcs or foreign_symbols(func):
            return
        before = self.lookup.funcs[name]
        known = self.lookup.known.get(name)
        added = self.lookup.temporaries.get(name, ()) if known is None else known.temporaries
        if len(func.buffers) == len(before.buffers) + len(added):
            kernel = CachedKernel(code, added)
            identity = self.lookup.identities[name]
            self.lookup.store.put(identity, before, kernel, may_alias=_may_alias(func))


@dataclass(frozen=True, slots=True)
class _Whole(Mapping[str, PrimFunc]):
    """Lowered kernels, those that are but signatures lowered when they are asked for."""

    kernels: Kernels
    funcs: Mapping[str, PrimFunc]

    def __getitem__(self, name: str) -> PrimFunc:
        return self.kernels.whole(name, self.funcs[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.funcs)

    def __len__(self) -> int:
        return len(self.funcs)


def _may_alias(func: PrimFunc) -> bool:
    return func.attrs.get("noalias", True) is False
