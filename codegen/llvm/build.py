"""Kernels to object code: modules of even size, compiled side by side, kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import llvmlite

from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.ir.target import Target
from unity.runtime.host import host_triple

from .abilities import abilities
from .analysis import Analysis, analyse
from .cache import ObjectCache, key_of
from .child import compile_in_child
from .emitter import Unit
from .kernel import emit_kernel
from .machine import Compiled, Level, compile_text
from .pool import LIMIT, LIMIT_SYMBOLS, POOL_SYMBOLS, pool_text

CODE_VERSION = "1"
"""Part of the cache's key: raise it when the way of compiling changes, not the text."""
_RESERVED = frozenset(
    {"malloc", "free", "memcpy", "memset", "memmove", *POOL_SYMBOLS, *LIMIT_SYMBOLS}
)
_MODULE_STATEMENTS = 400
_DECLARATIONS = """
declare void @unity_parallel_for(ptr, ptr, i64, i32)
declare i32 @unity_thread_limit()
declare noalias ptr @malloc(i64)
declare void @free(ptr)
"""


@dataclass(frozen=True, slots=True)
class Listing:
    """A kernel at three stages: as emitted, after LLVM's passes, as assembly."""

    llvm: str
    optimized: str
    assembly: str


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """Compiled kernels.

    Attributes:
        objects: Contents of object files; link them with each other and with `pool`. One of them
            holds how many threads the kernels may use.
        pool: The object file of the thread pool, to be linked once a process.
        symbols: The exported function of each kernel.
        messages: What each assert of a kernel says: the result ``k > 0`` of a call means
            ``messages[name][k - 1]``.
        target: What the code is for.
        functions: The prim funcs it was made from.
        checks: Whether accesses are checked.
    """

    objects: tuple[bytes, ...]
    pool: bytes
    symbols: Mapping[str, str]
    messages: Mapping[str, tuple[str, ...]]
    target: Target
    functions: Mapping[str, PrimFunc]
    checks: bool = False

    def llvm(self, name: str) -> str:
        """The LLVM IR of a kernel, as emitted."""
        func = self.functions[name]
        return _unit_text({name: (func, analyse(func.body))}, self.target, self.checks)[0]

    def listing(self, name: str) -> Listing:
        """A kernel's LLVM IR, optimized LLVM IR and assembly; compiles it again."""
        text, analysis = self.llvm(name), analyse(self.functions[name].body)
        compiled = compile_text(text, self.target, _level(analysis), listings=True)
        assert compiled.optimized is not None
        assert compiled.assembly is not None
        return Listing(text, compiled.optimized, compiled.assembly)

    def asm(self, name: str) -> str:
        """The assembly of a kernel."""
        return self.listing(name).assembly


def compile_kernels(
    funcs: Mapping[str, PrimFunc],
    target: Target,
    cache: Path | None = None,
    threads: int = 1,
    *,
    checks: bool = False,
) -> ObjectCode:
    """Compile lowered prim funcs.

    Args:
        funcs: Lowered kernels by name; the name is the exported symbol.
        target: What to generate code for; a foreign one is compiled in a child process, since
            LLVM ends the process on what it cannot do.
        cache: The folder of the disk cache, None for none.
        threads: How many modules to compile at a time.
        checks: Whether each access asserts that its index lies within the buffer (a kernel
            then returns -2 where one does not).

    Raises:
        UnityError: A kernel's name is taken by the C library or by the thread pool.
        UnsupportedError: A kernel uses an intrinsic that has no code.
    """
    taken = sorted(_RESERVED & set(funcs))
    if taken:
        raise UnityError(f"a kernel must not be named {', '.join(taken)}")
    store = None if cache is None else ObjectCache(cache / "objects")
    messages: dict[str, tuple[str, ...]] = {}
    analyses = {name: analyse(func.body) for name, func in funcs.items()}

    def finish(text: str, level: Level) -> bytes:
        return compile_cached(text, target, level, store)

    with ThreadPoolExecutor(max(1, threads)) as workers:
        jobs = []
        for level, names in _groups(analyses, threads):
            group = {name: (funcs[name], analyses[name]) for name in names}
            text, told = _unit_text(group, target, checks)
            messages.update(told)
            jobs.append(workers.submit(finish, text, level))
        pool = pool_object(target, store)
        limit = compile_cached(LIMIT, target, "full", store)
        objects = (*(job.result() for job in jobs), limit)
    if store is not None:
        store.trim()
    return ObjectCode(
        objects=objects,
        pool=pool,
        symbols={name: name for name in funcs},
        messages={name: messages[name] for name in funcs},
        target=target,
        functions=dict(funcs),
        checks=checks,
    )


def compile_cached(text: str, target: Target, level: Level, store: ObjectCache | None) -> bytes:
    """The object of a module's text, from the cache if it is there."""
    key = key_of(
        CODE_VERSION,
        llvmlite.__version__,
        level,
        target.triple,
        target.cpu,
        ",".join(target.features),
        text,
    )
    found = None if store is None else store.get(key)
    if found is not None:
        return found
    made: Compiled
    if target.triple == host_triple():
        made = compile_text(text, target, level)
    else:
        made = Compiled(compile_in_child(text, target, level))
    if store is not None:
        store.put(key, made.object)
    return made.object


def pool_object(target: Target, store: ObjectCache | None = None) -> bytes:
    """The object file of the thread pool for a target."""
    return _pool_object(target.triple, target.cpu, target.features, store)


@lru_cache(maxsize=8)
def _pool_object(
    triple: str, cpu: str, features: tuple[str, ...], store: ObjectCache | None
) -> bytes:
    target = Target("cpu", triple, cpu, features)
    return compile_cached(pool_text(target), target, "full", store)


def _level(analysis: Analysis) -> Level:
    return "full" if analysis.scalar_loops else "short"


def _groups(analyses: Mapping[str, Analysis], threads: int) -> list[tuple[Level, list[str]]]:
    """Kernels of one level in as many modules as threads can use, the biggest dealt out first."""
    by_level: dict[Level, dict[str, int]] = {}
    for name, analysis in analyses.items():
        by_level.setdefault(_level(analysis), {})[name] = analysis.statements
    groups: list[tuple[Level, list[str]]] = []
    for level, sizes in by_level.items():
        count = min(threads, 1 + sum(sizes.values()) // _MODULE_STATEMENTS)
        parts: list[list[str]] = [[] for _ in range(max(1, count))]
        weights = [0] * len(parts)
        for name in sorted(sizes, key=lambda n: -sizes[n]):
            least = weights.index(min(weights))
            parts[least].append(name)
            weights[least] += sizes[name]
        groups.extend((level, part) for part in parts if part)
    return groups


def _unit_text(
    funcs: Mapping[str, tuple[PrimFunc, Analysis]], target: Target, checks: bool
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The module of some kernels, and what the asserts of each say."""
    unit = Unit(abilities(target), function_attributes(target))
    told = {n: emit_kernel(unit, n, f, a, checks=checks) for n, (f, a) in funcs.items()}
    return _DECLARATIONS + unit.text(), told


def function_attributes(target: Target) -> str:
    """What every function carries: LLVM would otherwise choose narrower vectors than it has."""
    return f'nounwind "prefer-vector-width"="{target.vector_bits}"'
