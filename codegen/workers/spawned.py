"""A process of our own that compiles kernels into the cache, where ours cannot be copied.

It costs the start of Python and the import of the compiler (`kernels`).
"""

from __future__ import annotations

from unity.codegen.kernel_work import KernelWork

from .child import Child, ChildError
from .described import described
from .job import Job

_PATIENCE = 300.0
"""Seconds that it may take to be ready."""


class Spawned:
    """Carries the process.

    Args:
        work: What becomes of kernels.
    """

    def __init__(self, work: KernelWork) -> None:
        self._work = work
        self._child = Child("unity.codegen.workers.kernels")
        self._child.start()

    def begin(self) -> None:
        """Tell it what kernels are compiled by.

        Raises:
            ChildError: It gave no answer, or would not do what we would.
        """
        request = {
            "do": "start",
            "target": described(self._work.ctx.target),
            "folder": str(self._work.store.folder.absolute()),
            "setting": self._work.store.setting,
            "checks": self._work.checks,
        }
        if self._child.ask(request, _PATIENCE).get("same") is not True:
            raise ChildError("it compiles in another way")

    def do(self, job: Job) -> None:
        """Have it compile a kernel, if it reads the one that we have.

        Raises:
            ChildError: It gave no answer.
        """
        request = {
            "do": "kernel",
            "name": job.name,
            "module": job.text,
            "identity": job.identity,
        }
        self._child.ask(request, job.patience)

    def kill(self) -> None:
        """Stop it for good."""
        self._child.kill()

    def close(self) -> None:
        """End it."""
        self._child.close()
