"""What was measured, kept on disk: one JSON line a measurement, the latest of a key counts.

The file is a cache: what of it can't be read or written is told of once and done without.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from logging import getLogger
from pathlib import Path

import llvmlite
import numpy as np

from unity.codegen.sources import source_digest
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.artifact.replacing import replacing
from unity.script import constants_of, print_module

FILE = "resolve.jsonl"
LIMIT = 16 << 20
"""Bytes the file may take: beyond, the older half goes when it is read."""
log = getLogger("unity")


class Database:
    """Measured times by key.

    Args:
        folder: Where the file lies; None keeps everything in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / FILE
        self._known: dict[str, float] = {}
        self._decided: dict[str, str] = {}
        lines = [] if self._path is None else _lines(self._path)
        damaged = sum(not self._note(line) for line in lines)
        if damaged:
            log.warning(
                "%s: %d of %d lines are no measurements and are ignored",
                self._path, damaged, len(lines),
            )  # fmt: skip

    def _note(self, line: bytes) -> bool:
        """Take over a line; whether it is one of ours."""
        try:
            match json.loads(line):
                case {"key": str(key), "decision": str(decision)}:
                    self._decided[key] = decision
                case {"key": str(key), "seconds": int() | float() as seconds} if (
                    not isinstance(seconds, bool) and 0 <= seconds < math.inf
                ):
                    self._known[key] = float(seconds)
                case _:
                    return False
        except (ValueError, OverflowError, RecursionError):  # UnicodeDecodeError is a ValueError
            return False
        return True

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._known)

    def get(self, key: str) -> float | None:
        """The time of a key."""
        return self._known.get(key)

    def put(self, key: str, seconds: float, about: str) -> None:
        """Note a measurement; a line is written whole or not at all.

        Args:
            key: From `key_of`.
            seconds: What was measured.
            about: For people who read the file.
        """
        self._known[key] = seconds
        self._write({"key": key, "seconds": seconds, "about": about})

    def decision(self, key: str) -> str | None:
        """What was decided of a whole program, as `decide` was given it."""
        return self._decided.get(key)

    def decide(self, key: str, decision: str, about: str) -> None:
        """Note what was decided of a whole program.

        Args:
            key: From `key_of`.
            decision: As text.
            about: For people who read the file.
        """
        self._decided[key] = decision
        self._write({"key": key, "decision": decision, "about": about})

    def _write(self, row: dict[str, str | float]) -> None:
        """A line, whole or not at all; where that fails, no other is tried."""
        if self._path is None:
            return
        line = json.dumps(row) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            log.warning("measurements are not kept: %s", error)
            self._path = None


def _lines(path: Path) -> list[bytes]:
    """The lines of a file, the later half of one that is too large; none if it can't be read."""
    try:
        if path.exists() and not path.is_file():
            raise OSError(None, "it is no file", str(path))
        lines = path.read_bytes().splitlines()
        if path.stat().st_size > LIMIT:
            lines = _latest(lines, LIMIT // 2)
            with suppress(OSError), replacing(path) as file:
                file.writelines(line + b"\n" for line in lines)
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("measurements can't be read and are ignored: %s", error)
        return []
    return lines


def _latest(lines: Sequence[bytes], size: int) -> list[bytes]:
    """The last lines, of so many bytes at most."""
    kept: list[bytes] = []
    for line in reversed(lines):
        size -= len(line) + 1
        if size < 0:
            break
        kept.append(line)
    return kept[::-1]


def key_of(
    module: IRModule, road: str, target: Target, sizes: Sequence[tuple[str, int]], versions: str
) -> str:
    """What a measurement depends on: the program (not the values of its constants), and where."""
    constants = [f"{k} {v.dtype} {v.shape}" for k, v in constants_of(module).items()]
    parts = (
        print_module(module),
        ", ".join(constants),
        source_digest(),
        road,
        target.triple,
        target.cpu,
        ",".join(target.features),
        str(target.threads),
        f"caches {target.l1_bytes} {target.l2_bytes} {target.l3_bytes}",
        str(sorted(sizes)),
        versions,
        llvmlite.__version__,
        np.__version__,
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
