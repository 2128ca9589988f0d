"""How a model is compiled, as the options of the commands say it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:  # what a command imports that compiles nothing is to be little
    from unity.transform import Precision


class Compiling(TypedDict):
    """Arguments of `unity.compile`."""

    target: str
    threads: int | None
    precision: Precision
    winograd: bool
    db: Path | None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `unity.compile` that commands share, and files that belong to a model."""

    threads: int | None = None
    precision: Precision = "f32"
    winograd: bool = True
    target: str = "cpu"
    params: Path | None = None
    examples: Path | None = None
    db: Path | None = None

    @property
    def compiling(self) -> Compiling:
        """How a module is compiled, wherever a command does it."""
        return {
            "target": self.target,
            "threads": self.threads,
            "precision": self.precision,
            "winograd": self.winograd,
            "db": self.db,
        }
