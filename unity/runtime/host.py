"""What this machine is: its triple, its cpu's features, its number of cpus."""

from __future__ import annotations

import os
from functools import lru_cache

import llvmlite.binding as llvm

from unity.runtime.tiles import permit_tiles


@lru_cache(maxsize=1)
def host_triple() -> str:
    """LLVM's triple of this process."""
    return llvm.get_process_triple()


@lru_cache(maxsize=1)
def host_features() -> dict[str, bool]:
    """Every feature LLVM knows of this kind of machine, and whether this one has it.

    AMX counts where the system lets this process use it, which is asked for here.
    """
    found = dict(llvm.get_host_cpu_features())
    if found.get("amx-tile") and not permit_tiles():
        found.update({name: False for name in found if name.startswith("amx-")})
    return found


def available_cpus() -> int:
    """How many cpus this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
