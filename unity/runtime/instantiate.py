"""An image as an executable of this process: linked, its engines started, its functions wrapped."""

from __future__ import annotations

from dataclasses import dataclass

from unity.runtime.artifact.match import why_unfit
from unity.runtime.engines.engine_kernel import EngineKernel
from unity.runtime.executable import Executable, Parts
from unity.runtime.image import Image
from unity.runtime.kernel_timer import NativeKernel
from unity.runtime.linking.link import link, thread_pool
from unity.runtime.listings import Listings
from unity.runtime.native import NativeCode, supported
from unity.runtime.native_info import LENGTHS, TABLES, NativeInfo
from unity.runtime.threads import LIMIT_SYMBOL, Threads
from unity.runtime.vm import VM


def instantiate(
    image: Image, threads: int | None = None, listings: Listings | None = None
) -> Executable:
    """Link an image and make it callable; one of another machine is not linked, nor called.

    Args:
        image: The image.
        threads: How many threads it may use; the target's number if not given.
        listings: The texts it was made from, if they are known.

    Raises:
        UnityError: A library, a function of it or an engine is missing, or can't be used.
    """
    program = image.program
    elsewhere = why_unfit(image.target)
    if elsewhere is not None:
        return Executable(Parts(image, (), listings=listings, unfit=elsewhere))
    count = _Count(image.target.threads if threads is None else threads)
    imports = dict(thread_pool(image.pool).addresses)
    for symbol in image.symbols:
        library, _, function = symbol.partition(".")
        imports[symbol] = image.libraries[library].address(function)
    engines = {code.name: EngineKernel(code, count) for code in image.engines}
    imports.update((name, kernel.address) for name, kernel in engines.items())
    native = image.native if supported() else None
    objects = [*image.objects, *([image.native_object] if native and native.functions else [])]
    exports = list(dict.fromkeys(k.function for k in program.kernels if not k.engine))
    linked = link(objects, [*exports, *_exports(native), LIMIT_SYMBOL], imports)
    limit = count.threads = Threads(thread_pool(image.pool), linked, count.first)
    kernels = tuple(
        engines[k.name] if k.engine else NativeKernel(linked[k.function], k)
        for k in program.kernels
    )
    vm = VM(program, kernels, image.constants, image.hosts)
    code = None if native is None else NativeCode(linked, native, image.constants, vm)
    return Executable(Parts(image, kernels, code, listings, linked, limit))


def _exports(native: NativeInfo | None) -> tuple[str, ...]:
    if native is None or not native.functions:
        return ()
    return (*TABLES, LENGTHS, *(s for f in native.functions for s in (f.entry, f.release)))


@dataclass(slots=True)
class _Count:
    """How many threads the executable uses, which engines ask at every call."""

    first: int
    threads: Threads | None = None

    def __call__(self) -> int:
        return self.first if self.threads is None else self.threads.count
