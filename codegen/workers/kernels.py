"""``python -m unity.codegen.workers.kernels``: compiles kernels into the cache.

Kernels come as text, so that a process of our own does, which a program's threads, locks and open
files are nothing to. What is not surely the same here as in the parent is left to it: the compiler
and the target by the cache's setting, a kernel by its fingerprint.
"""

from __future__ import annotations

from pathlib import Path

from unity.codegen.kernel_cache import KernelCache, setting_of
from unity.codegen.kernel_work import KernelWork, import_all
from unity.collection import no_cycle_collection
from unity.ir.fingerprint import fingerprint
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.tail import split

from .child import Message
from .described import target_from
from .serve import serve


class Kernels:
    """Carries what all kernels are compiled by."""

    def __init__(self) -> None:
        self._work: KernelWork | None = None

    def start(self, request: Message) -> Message:
        """Get ready, and say whether all that code depends on is what it is for the parent.

        Args:
            request: ``target`` is the machine, ``folder`` that of all caches, ``setting`` the
                cache's, ``checks`` whether accesses are checked.
        """
        target, checks = target_from(str(request["target"])), bool(request["checks"])
        tail = split(pipeline(target.kind))[1]
        store = KernelCache(
            Path(str(request["folder"])), setting_of(tail.identity, target, checks=checks)
        )
        self._work = KernelWork(store, tail, Context(target), checks)
        import_all()
        return {"same": store.setting == request["setting"]}

    def kernel(self, request: Message) -> Message:
        """Compile a kernel, and say whether it is the one that the parent has.

        Args:
            request: ``name`` is what it is called, ``module`` its text, ``identity`` its
                fingerprint.
        """
        assert self._work is not None
        name, identity = str(request["name"]), str(request["identity"])
        func = parse(str(request["module"]))[name]
        same = isinstance(func, PrimFunc) and fingerprint(func) == identity
        if isinstance(func, PrimFunc) and same:
            self._work.do(name, func, identity)
        return {"same": same}


if __name__ == "__main__":
    kernels = Kernels()
    with no_cycle_collection():
        serve({"start": kernels.start, "kernel": kernels.kernel})
