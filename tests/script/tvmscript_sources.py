"""``python -m tests.script.tvmscript_sources``: how much of TVM's own TVMScript is read.

The sources lie beside the repository (``shared/tvmscript``; its README says where they are from). A
source is *read* when `unity.script.tvmscript` parses it to a module that is well formed and prints
to a text that is the same module. Of TVM's head those count that TVM's parser takes by themselves,
of v0.18 those that need no names of the text around them (`outside_names`). Sources of a device
(`device_words`) don't count; they are listed with their word, and with what was said where they
were refused. Each source has a limit of time, in a process of its
own that may be lost; an error that is none of ours, a hang and a lost process are failures.

What was found goes to ``tvmscript_sources.json``. The exit code tells whether there were failures.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.well_formed.verify import verify
from unity.script import constants_of, parse, print_module, tvmscript

from .device_words import device_word
from .isolated import isolated
from .outside_names import outside_names

RESULTS = Path(__file__).with_name("tvmscript_sources.json")
FOLDERS = (
    Path("/work/shared/tvmscript"),
    Path(__file__).parents[3] / "shared" / "tvmscript",
)
LIMIT = 20.0
"""Seconds for a source."""
SHOWN = 60
"""Refusals in the file, the most frequent ones."""
Fate: TypeAlias = Literal["read", "refused", "raw"]


@dataclass(frozen=True, slots=True)
class Script:
    """A source of TVM's.

    Attributes:
        set: ``head`` or ``v0.18``.
        place: The file of TVM's with the line, and what is defined.
        kind: ``module``, ``prim`` or ``relax``.
        text: What is read.
        counts: Whether TVM takes it by itself; of v0.18, whether nothing speaks against it.
        device: What makes it one of a device's; None for one of a CPU's.
    """

    set: str
    place: str
    kind: str
    text: str
    counts: bool
    device: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a source, with what was said."""

    fate: Fate
    said: str = ""


@cache
def scripts() -> tuple[Script, ...] | None:
    """All sources; None where they don't lie beside the repository."""
    for folder in FOLDERS:
        file = folder / "sources.jsonl.xz"
        if file.exists():
            with lzma.open(file, "rt") as lines:
                return tuple(_script(json.loads(line)) for line in lines)
    return None


def _script(row: dict[str, object]) -> Script:
    text = str(row["src"])
    place = f"{row['file']}:{row['line']} {row['name']}"
    accepted = bool(row["tvm_accepts"]) if "tvm_accepts" in row else not outside_names(text)
    return Script(str(row["set"]), place, str(row["kind"]), text, accepted, device_word(text))


def outcome(script: Script) -> Outcome:
    """Read a source, in this process."""
    try:
        module = tvmscript.parse(script.text)
        verify(module)
        back = parse(print_module(module), constants_of(module))
        difference = first_difference(module, back)
    except UnityError as error:
        return Outcome("refused", error.message)
    except RecursionError:
        return Outcome("raw", "RecursionError")
    except Exception as error:  # the point: any that is not ours
        return Outcome("raw", f"{type(error).__name__}: {error}")
    return Outcome("read") if difference is None else Outcome("raw", f"printed: {difference}")


def outcomes(
    given: Sequence[Script],
    jobs: int,
    limit: float = LIMIT,
    task: Callable[[Script], Outcome] = outcome,
) -> Iterator[tuple[Script, Outcome]]:
    """What becomes of each source, in no order.

    Args:
        given: The sources.
        jobs: Processes that read them.
        limit: Seconds for one.
        task: What is done with each; it must be known by name in other processes.
    """
    return isolated(task, _lost, given, jobs, limit)


def _lost(why: str) -> Outcome:
    return Outcome("raw", why)


@dataclass(frozen=True, slots=True)
class Share:
    """Of how many sources how many are read."""

    read: int
    of: int
    percent: float


def _share(found: Iterable[tuple[Script, Outcome]]) -> Share:
    fates = [result.fate for _, result in found]
    read = fates.count("read")
    return Share(read, len(fates), round(100 * read / max(len(fates), 1), 1))


def reason(said: str) -> str:
    """What was said, with names and numbers left out, so that equal reasons are counted together.

    >>> reason("c has 2 dims, got 1 index")
    'c has # dims, got # index'
    """
    return re.sub(r"\b\d+\b", "#", said.splitlines()[0] if said else "")[:110]


def summary(found: Sequence[tuple[Script, Outcome]]) -> dict[str, object]:
    """What goes to the file."""
    cpu = [pair for pair in found if pair[0].device is None and pair[0].counts]
    refused = [pair for pair in cpu if pair[1].fate == "refused"]
    kinds = sorted({(s.set, s.kind) for s, _ in cpu})
    words: dict[str, list[str]] = {}
    for script, result in sorted(found, key=lambda pair: (pair[0].set, pair[0].place)):
        if script.device is not None and result.fate != "read":
            words.setdefault(script.device, []).append(f"{script.set} {script.place}")
    return {
        "read": {
            name: asdict(_share(p for p in cpu if p[0].set == name)) for name in ("head", "v0.18")
        },
        "kinds": {
            f"{a}, {b}": asdict(_share(p for p in cpu if (p[0].set, p[0].kind) == (a, b)))
            for a, b in kinds
        },
        "failures": sorted(f"{s.place}: {r.said}" for s, r in found if r.fate == "raw"),
        "refusals": [
            [count, *key]
            for key, count in Counter((s.kind, reason(r.said)) for s, r in refused).most_common(
                SHOWN
            )
        ],
        "of a device": {
            "read": sum(s.device is not None and r.fate == "read" for s, r in found),
            "refused": {word: sorted(set(places)) for word, places in sorted(words.items())},
        },
    }


def main() -> int:
    """Read all sources, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="one of so many; no file")
    parser.add_argument("--list", default="", help="print sources whose refusal holds this text")
    options = parser.parse_args()
    given = scripts()
    if given is None:
        print("shared/tvmscript does not lie beside the repository", file=sys.stderr)
        return 2
    found = list(outcomes(given[:: options.every], options.jobs))
    made = summary(found)
    for script, result in found:
        if options.list and script.counts and options.list in result.said:
            print(f"# {script.set} {script.place} ({script.kind}): {result.said}")
            print(script.text)
    if options.every == 1:
        RESULTS.write_text(json.dumps(made, indent=1) + "\n")
    print(json.dumps({k: made[k] for k in ("read", "kinds", "failures")}, indent=1))
    return 1 if made["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
