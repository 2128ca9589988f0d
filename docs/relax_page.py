"""The page on where our language's operators differ from Relax's, made of what reads TVMScript.

A row of `unity.script.tvmscript.relax` says what Relax's operator takes and how that is said here;
a test compares these rows with TVM itself (`tests/script/relax_defaults.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from unity.arguments import REQUIRED, Parameter, shown
from unity.op.naming import OURS, names_of
from unity.op.table import OPS
from unity.script.tvmscript.foreign import Foreign
from unity.script.tvmscript.relax import RELAX


def differences() -> list[tuple[str, str, str]]:
    """Our operator, Relax's, and what differs besides `x` for `data`, where something does."""
    rows: list[tuple[str, str, str]] = []
    for row in RELAX:
        name = row.signature.name.removeprefix("R.")
        if name in OPS:
            found = "; ".join(_differs(row, name))
            if found:
                rows.append((f"R.{OPS[name].usage}", row.signature.usage, found))
    return sorted(rows)


def only_here() -> list[str]:
    """Public operators that Relax lacks."""
    return sorted(f"R.{n}" for n in OPS if n not in OURS and names_of(n).relax is None)


def _differs(row: Foreign, name: str) -> Iterator[str]:
    ours = {p.name: p for p in OPS[name].signature.params}
    theirs = [p for p in row.signature.params if not p.rest]
    called = {p.name: row.ours.get(p.name, p.name) for p in theirs}
    pairs = [(old, new) for old, new in called.items() if old != new and new in ours]
    renamed = [f"`{new}` for `{old}`" for old, new in pairs if (old, new) != ("data", "x")]
    if renamed:
        yield f"names: {', '.join(renamed)}"
    for p in theirs:
        mine = ours.get(called[p.name])
        if mine is not None:
            yield from _defaults(mine, row.says.get(p.name, p.default))
    lacking = [p for p in theirs if called[p.name] not in ours]
    for p in lacking:
        taken = row.same.get(p.name, ())
        some = taken if isinstance(taken, tuple) else ()
        allowed = taken if isinstance(taken, str) else " or ".join(map(shown, some)) or "none"
        yield f"no `{p.name}` (read: {allowed})"
    own = [n for n in ours if n not in called.values()]
    if own:
        yield f"here alone: {', '.join(f'`{n}`' for n in own)}"


def _defaults(mine: Parameter, theirs: object) -> Iterator[str]:
    if _same(mine.default, theirs):
        return
    said = ["required" if d is REQUIRED else shown(d) for d in (mine.default, theirs)]
    if said[0] != said[1]:
        yield f"`{mine.name}`: {said[0]} by default, there {said[1]}"


def _same(mine: object, theirs: object) -> bool:
    """Whether defaults mean the same: a number stands for a tuple of it, a dtype for its name."""
    if isinstance(theirs, tuple) and theirs and len(set(theirs)) == 1:
        theirs = theirs[0]
    if isinstance(mine, tuple) and mine and len(set(mine)) == 1:
        mine = mine[0]
    return mine is theirs or mine == theirs or str(mine) == str(theirs)
