"""Records of tuning, and their form: a line of JSON each, with a checksum.

A record belongs to a kernel, by what it computes (`unity.transform.rules.canonical.identity`), to
the sizes it was measured at and to a machine; to no model, no place in one, and no version of the
compiler. One of a form belongs to a call of an operator in the same way
(`unity.transform.graph.resolve.forms_by_record.call_identity`). The format (version 1) of a line is
an object with

- ``v``: the version, 1; ``kind``: ``"trial"``, ``"best"`` or ``"form"``; ``sum``: the CRC-32, as 8
  hexadecimal digits, of the same object without it, its keys sorted and no blanks in it;
- ``kernel``, ``target`` (texts), ``sizes`` (``[[name, number], ...]``, sorted);
- ``space`` and ``point``: of which space, and what was decided there (JSON as text);
- ``seconds`` and ``reference``: the candidate's time and that of the default kernel, which ran by
  turns with it; ``null`` where it failed, and ``why`` tells that;
- of a trial ``features``: what a cost model learns from;
- of a best ``trace``: the steps (JSON as text), ``about``: for people, ``date``: when the
  session began, and ``within``: whether both times are of calls within a program (older lines have
  none: false). What a program is not faster with as a whole is said to take the default's time;
- of a form ``call`` instead of ``kernel``, ``sizes`` by the names that the call's identity gives
  them, ``form`` and ``usual``, the one measured to be fastest and the default's, both times within
  a program (0 where none is known), ``tried``, the other forms that were measured or failed,
  ``about`` and ``date``; no ``space`` or ``point``.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TypeAlias

from unity.runtime.records import RecordError, decode

VERSION = 1
WORTH = 0.98
"""A record is used if its kernel takes at most this share of the default one's time."""
Sizes: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate that was measured."""

    kernel: str
    target: str
    sizes: Sizes
    space: str
    point: str
    seconds: float | None
    reference: float | None
    features: tuple[float, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Best:
    """A candidate that was faster than the default kernel, with its steps."""

    kernel: str
    target: str
    sizes: Sizes
    space: str
    point: str
    seconds: float
    reference: float
    trace: str
    about: str
    date: str
    within: bool = False

    @property
    def ratio(self) -> float:
        """What it takes of the default kernel's time."""
        return self.seconds / self.reference if self.reference else 1.0

    @property
    def worth(self) -> bool:
        """Whether it is used, if it is the fastest."""
        return self.ratio <= WORTH


@dataclass(frozen=True, slots=True)
class FormRecord:
    """The form that some calls were fastest in: another one than by default, or the same."""

    call: str
    target: str
    sizes: Sizes
    form: str
    usual: str
    seconds: float
    reference: float
    tried: tuple[str, ...]
    about: str
    date: str

    @property
    def ratio(self) -> float:
        """What it takes of the time of the default's form."""
        return self.seconds / self.reference if self.reference else 1.0

    @property
    def worth(self) -> bool:
        """Whether it is used."""
        return self.form != self.usual and self.seconds > 0 and self.ratio <= WORTH


Record: TypeAlias = Trial | Best | FormRecord
KINDS: dict[str, type[Trial | Best | FormRecord]] = {
    "trial": Trial,
    "best": Best,
    "form": FormRecord,
}


def now() -> str:
    """The date as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _first(cls: type[Trial | Best | FormRecord]) -> bytes:
    return f'{{"{min("v", "kind", "sum", *(f.name for f in fields(cls)))}":'.encode()


BEGINNINGS = tuple({_first(cls) for cls in KINDS.values()})
"""What lines of records begin with: their keys are in order."""


def encoded(record: Record) -> str:
    """A record as its line, without the end of the line.

    >>> trial = Trial("k", "cpu", (("n", 4),), "rules", "{}", 1e-3, 2e-3, (1.0,))
    >>> decoded(encoded(trial)) == trial
    True
    """
    kind = next(name for name, cls in KINDS.items() if isinstance(record, cls))
    data: dict[str, object] = {"v": VERSION, "kind": kind, **asdict(record)}
    return _text({**data, "sum": _sum(data)})


def decoded(line: str) -> Record | None:
    """The record of a line; None where it is torn, changed, or of another version."""
    try:
        data = json.loads(line)
        if not isinstance(data, dict) or data.get("v") != VERSION:
            return None
        given = data.pop("sum", None)
        if given != _sum(data):
            return None
        del data["v"]
        return decode(KINDS[data.pop("kind")], json.dumps(data))
    except (ValueError, KeyError, TypeError, RecursionError, RecordError):
        return None


def _text(data: dict[str, object]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _sum(data: dict[str, object]) -> str:
    return f"{zlib.crc32(_text(data).encode()):08x}"
