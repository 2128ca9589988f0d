"""Kernels to object code: a module each, compiled side by side, kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import llvmlite

from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.runtime.host import host_triple

from .abilities import abilities
from .cache import FOLDER as OBJECTS
from .cache import ObjectCache, key_of
from .child import compile_in_child
from .emitter import Unit
from .facts.analysis import Analysis, analyse
from .machine import Compiled, Level, compile_text
from .pool.module import LIMIT, LIMIT_SYMBOLS, POOL_SYMBOLS, pool_text

CODE_VERSION = "3"
"""Part of the cache's key: raise it when the way of compiling changes, not the text."""
MANY_STATEMENTS = 1000
"""Statements of a kernel with vectors from which on O2 takes a second or two; of attention, which
has a few scalars beside its vectors, it gains nothing."""
_RESERVED = frozenset(
    {"malloc", "free", "memcpy", "memset", "memmove", *POOL_SYMBOLS, *LIMIT_SYMBOLS}
)
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
class KernelCode:
    """The code of one kernel.

    Attributes:
        symbol: The function that the object exports.
        messages: What each assert says: the result ``k > 0`` of a call means ``messages[k - 1]``.
        key: The object's name in the cache.
        code: Contents of the object file.
    """

    symbol: str
    messages: tuple[str, ...]
    key: str
    code: bytes


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """Compiled kernels.

    Attributes:
        kernels: What was made of each kernel.
        limit: An object file that holds how many threads the kernels may use.
        pool: The object file of the thread pool, to be linked once a process.
        target: What the code is for.
        functions: The lowered prim funcs it was made from.
        checks: Whether accesses are checked.
    """

    kernels: Mapping[str, KernelCode]
    limit: bytes
    pool: bytes
    target: Target
    functions: Mapping[str, PrimFunc]
    checks: bool = False

    @property
    def objects(self) -> tuple[bytes, ...]:
        """Contents of object files; link them with each other and with `pool`."""
        return (*{k.symbol: k.code for k in self.kernels.values()}.values(), self.limit)

    @property
    def symbols(self) -> dict[str, str]:
        """The exported function of each kernel."""
        return {name: k.symbol for name, k in self.kernels.items()}

    @property
    def messages(self) -> dict[str, tuple[str, ...]]:
        """What each assert of a kernel says, by the kernel's name."""
        return {name: k.messages for name, k in self.kernels.items()}

    def llvm(self, name: str) -> str:
        """The LLVM IR of a kernel, as emitted."""
        func = self.functions[name]
        return _unit_text(name, func, analyse(func.body), self.target, self.checks)[0]

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
    symbols: Mapping[str, str] | None = None,
) -> ObjectCode:
    """Compile lowered prim funcs.

    Args:
        funcs: Lowered kernels by name.
        target: What to generate code for; a foreign one is compiled in a child process, since
            LLVM ends the process on what it cannot do.
        cache: The folder of the disk cache, None for none.
        threads: How many kernels to compile at a time.
        checks: Whether each access asserts that its index lies within the buffer (a kernel
            then returns -2 where one does not).
        symbols: What the function of a kernel is called; as the kernel where nothing is said.
            Kernels of one symbol must be the same.

    Raises:
        UnityError: A kernel's symbol is taken by the C library or by the thread pool.
        UnsupportedError: A kernel uses an intrinsic that has no code.
    """
    symbols = {name: (symbols or {}).get(name, name) for name in funcs}
    taken = sorted(_RESERVED & set(symbols.values()))
    if taken:
        raise UnityError(f"a kernel must not be named {', '.join(taken)}")
    store = None if cache is None else ObjectCache(cache / OBJECTS)
    analyses = {name: analyse(func.body) for name, func in funcs.items()}
    largest_first = sorted(funcs, key=lambda name: -analyses[name].statements)
    jobs: dict[str, tuple[tuple[str, ...], str, Future[bytes]]] = {}
    with ThreadPoolExecutor(max(1, threads)) as workers:
        for name in largest_first:
            symbol, analysis = symbols[name], analyses[name]
            if symbol in jobs:
                continue
            text, told = _unit_text(symbol, funcs[name], analysis, target, checks)
            level = _level(analysis)
            key = object_key(text, target, level)
            done = workers.submit(compile_cached, text, target, level, store)
            jobs[symbol] = (told, key, done)
        pool = pool_object(target, store)
        limit = limit_object(target, store)
        made = {s: KernelCode(s, told, key, done.result()) for s, (told, key, done) in jobs.items()}
    if store is not None and made:
        store.trim()
    return ObjectCode(
        kernels={name: made[symbols[name]] for name in funcs},
        limit=limit,
        pool=pool,
        target=target,
        functions=dict(funcs),
        checks=checks,
    )


def compile_kernel(
    func: PrimFunc, symbol: str, target: Target, cache: Path, *, checks: bool = False
) -> KernelCode:
    """Compile one lowered prim func, as `compile_kernels` does.

    Args:
        func: The kernel.
        symbol: What its function is called.
        target: What to generate code for.
        cache: The folder of the disk cache.
        checks: Whether each access asserts that its index lies within the buffer.

    Raises:
        UnsupportedError: The kernel uses an intrinsic that has no code.
    """
    analysis = analyse(func.body)
    text, told = _unit_text(symbol, func, analysis, target, checks)
    level = _level(analysis)
    code = compile_cached(text, target, level, ObjectCache(cache / OBJECTS))
    return KernelCode(symbol, told, object_key(text, target, level), code)


def object_key(text: str, target: Target, level: Level) -> str:
    """The name of a module's object in the cache."""
    return key_of(
        CODE_VERSION,
        llvmlite.__version__,
        level,
        target.triple,
        target.cpu,
        ",".join(target.features),
        text,
    )


def compile_cached(text: str, target: Target, level: Level, store: ObjectCache | None) -> bytes:
    """The object of a module's text, from the cache if it is there."""
    key = object_key(text, target, level)
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
    return _common_object(pool_text, target.triple, target.cpu, target.features, store)


def limit_object(target: Target, store: ObjectCache | None = None) -> bytes:
    """The object file of how many threads may work, which every library holds."""
    return _common_object(_limit_text, target.triple, target.cpu, target.features, store)


@lru_cache(maxsize=16)
def _common_object(
    text: Callable[[Target], str],
    triple: str,
    cpu: str,
    features: tuple[str, ...],
    store: ObjectCache | None,
) -> bytes:
    target = Target("cpu", triple, cpu, features)
    return compile_cached(text(target), target, "full", store)


def _limit_text(target: Target) -> str:
    """The limit's LLVM IR, the same for all targets."""
    return LIMIT


def _level(analysis: Analysis) -> Level:
    """Which passes LLVM runs: all where there are scalars, but of many statements with vectors."""
    large = analysis.vector_loops and analysis.statements > MANY_STATEMENTS
    return "full" if analysis.scalars and not large else "short"


def _unit_text(
    symbol: str, func: PrimFunc, analysis: Analysis, target: Target, checks: bool
) -> tuple[str, tuple[str, ...]]:
    """The module of a kernel, and what its asserts say."""
    from .kernel import emit_kernel  # long to import, and not needed for cached kernels

    unit = Unit(abilities(target), function_attributes(target), target.machine)
    told = emit_kernel(unit, symbol, func, analysis, checks=checks)
    return _DECLARATIONS + unit.text(), told


def function_attributes(target: Target) -> str:
    """What every function carries: LLVM would otherwise choose narrower vectors than it has."""
    return f'nounwind "prefer-vector-width"="{target.vector_bits}"'
