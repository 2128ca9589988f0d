"""Records of a program's kernels and calls that are not used: of another number of threads."""

from __future__ import annotations

from logging import getLogger

from unity.transform.passes import Context
from unity.transform.seen import seen

from .store import Records

log = getLogger("unity")


def tell_unused(records: Records, context: Context) -> None:
    """Tell, by the logger ``unity``, what the program has records of for other threads alone.

    Args:
        records: All of them.
        context: What the program was compiled with: passes reported what it has.
    """
    others, here = records.by_other_threads(context.target), context.target.threads
    threads = sorted({others[name] for name in seen(context) if name in others})
    if not threads:
        return
    log.warning(
        "%s has records of this program's kernels for %s, and none for %s: they are not used; "
        "compile it with threads=%d (--threads %d), or tune it with threads=%d",
        records.path or "db", " and ".join(map(_counted, threads)), _counted(here),
        threads[-1], threads[-1], here,
    )  # fmt: skip


def _counted(threads: int) -> str:
    return f"{threads} thread{'' if threads == 1 else 's'}"
