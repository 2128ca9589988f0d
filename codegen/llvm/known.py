"""Names that LLVM knows: the cpus and features of a triple, asked before anything is compiled.

LLVM prints a warning for a cpu or a feature that it does not know, goes on without, and may end
the process where a cpu is left that can't run the triple's code. It tells the names it knows on
standard error only, so a child process asks it: ``python -m unity.codegen.llvm.known TRIPLE``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

import llvmlite.binding as llvm

from unity.errors import UnityError
from unity.machine.target import Target
from unity.runtime.host import host_features, host_triple

from .host import host_target
from .machine import start

_TIMEOUT = 60.0
_UNKNOWN_TRIPLE = 3
_ENTRY = re.compile(r"^  (\S+) +- ")


@dataclass(frozen=True, slots=True)
class Known:
    """What LLVM knows of the machines of a triple."""

    cpus: frozenset[str]
    features: frozenset[str]


def require_known(target: Target) -> None:
    """Refuse a target whose triple, cpu or features LLVM does not know.

    Raises:
        UnityError: It does not; the hint has names that are like it.
    """
    usual = ("", "generic", host_target().cpu)
    here = target.triple == host_triple() and target.cpu in usual
    if here and host_features().keys() >= set(target.features):
        return
    known = _known(target.triple)
    if target.cpu:
        _require("cpu", target.cpu, known.cpus, target.triple)
    for feature in target.features:
        _require("feature", feature, known.features, target.triple)


def _require(what: str, name: str, known: Iterable[str], triple: str) -> None:
    if known and name not in known:  # nothing is known where LLVM did not answer
        near = get_close_matches(name.lower().lstrip("+-"), sorted(known), 3, 0.5)
        hint = f"LLVM calls {what}s of this kind: {', '.join(near or sorted(known)[:8])}"
        raise UnityError(f"no {what} {name!r} for {triple}", hint=hint)


@lru_cache(maxsize=16)
def _known(triple: str) -> Known:
    command = [sys.executable, "-m", "unity.codegen.llvm.known", triple]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return Known(frozenset(), frozenset())
    said = done.stderr.decode(errors="replace")
    if done.returncode == _UNKNOWN_TRIPLE:
        raise UnityError(
            f"LLVM knows no machine {triple!r}",
            hint='triples are like "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", '
            '"riscv64-unknown-linux-gnu", "wasm32-unknown-unknown"',
        )
    cpus, _, features = said.partition("Available features")
    return Known(_entries(cpus), _entries(features))


def _entries(text: str) -> frozenset[str]:
    return frozenset(m[1] for line in text.splitlines() if (m := _ENTRY.match(line)))


def _main(triple: str) -> int:
    start()
    try:
        machines = llvm.Target.from_triple(triple)
    except RuntimeError:
        return _UNKNOWN_TRIPLE
    machines.create_target_machine(cpu="help")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
