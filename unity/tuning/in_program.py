"""The program whose kernels are tuned: the fastest are timed within it, and it as a whole."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from unity.errors import UnityError
from unity.runtime.executable import Executable

from .records import Records
from .records.record import WORTH
from .search import Fast, Search
from .session import Session
from .tasks.task import Place
from .workers import Candidate, Measured, Measurer, Program
from .workers.program import written

Build = Callable[[Records], Executable]
"""Compiles the program with its kernels laid out by records."""

_CONTENDERS, _FEW = 8, 2
"""Of each kernel, how many of the fastest run within the program, and how many if time is short."""
_AGAIN, _AGAIN_VERSIONS = 3, 3
"""How often winners are measured once more: where one was lucky, the next one is. How many versions
of the program run for that."""
_VERSION_SECONDS, _SHORTEST = 4.0, 0.1
"""How long the program runs for each of them, and by default: usually, and at least."""
_BUILDING = 0.4
"""The share of the time after which no other kernel's contenders are compiled."""
_ROUNDS = 3
"""How often the whole program is timed by default and tuned."""


def saved(build: Build, inputs: Sequence[Sequence[object]], folder: Path) -> Program:
    """The program as it is by default, in a file.

    Args:
        build: Compiles it.
        inputs: Arguments of its main function, for each of the sizes that are tuned for.
        folder: Where files are made.

    Raises:
        UnityError: It can't be compiled, or not be saved, as what calls Python can't.
    """
    path = folder / "usual.unity"
    build(Records()).save(path)
    return Program(path, [[written(a, folder) for a in args] for args in inputs])


def settle(session: Session, measurer: Measurer, end: float | None = None) -> Sequence[Search]:
    """Measure the fastest candidates of all kernels within the program; what wins there counts.

    In a run all kernels are candidates, each its own k-th; so all of them are measured in the time
    of a few. The fastest of several is so by luck, too: winners are measured once more, and what
    they take then is what is noted.

    Args:
        session: Its searches carry what is left.
        measurer: Knows the program, and compiles candidates.
        end: When it is to be over, by `time.monotonic`, so that fewer candidates run, and not for
            as long: of kernels that it does not come to nothing is measured.

    Returns:
        The searches of kernels of which nothing was measured: nothing was found, or the program
        does not run, or does not call the kernel in one way.
    """
    begin = time.monotonic()
    seconds = inf if end is None else end - begin
    if seconds <= 0:
        return session.searches
    many = _CONTENDERS if end is None else int(seconds / _VERSION_SECONDS) - 1
    built: list[Contest] = []
    for kernel in contests(session.searches, max(_FEW, min(_CONTENDERS, many))):
        if time.monotonic() - begin > _BUILDING * seconds:
            break
        kernel.build(measurer)
        built.append(kernel)
    kernels = [k for k in built if not k.is_lost]
    most = max((len(k.contenders) for k in kernels), default=0)
    turns = [[turn if turn < len(k.contenders) else None for k in kernels] for turn in range(most)]
    again = _AGAIN if many >= _FEW else 1
    left = inf if end is None else end - time.monotonic()
    each = min(_VERSION_SECONDS, max(_SHORTEST, left / (2 + most + _AGAIN_VERSIONS * again)))
    if turns and not _measured(kernels, turns, measurer, each):
        return session.searches
    for _ in range(again):
        winners = [None if (w := k.winner) in k.sure else w for k in kernels]
        before = [dict(k.measured) for k in kernels]
        if all(w is None for w in winners) or not _measured(kernels, [winners], measurer, each):
            break
        for kernel, winner, was in zip(kernels, winners, before, strict=True):
            if winner is not None and kernel.measured[winner] is not was[winner]:
                kernel.sure.add(winner)
    for kernel in kernels:
        kernel.drop_doubtful()
        for k, measured in kernel.measured.items():
            session.keep_best(kernel.searches[0], kernel.contenders[k].proposal, measured)
    for kernel in built:
        kernel.tell()
    done = {id(s) for k in built if k.measured or k.is_lost for s in k.searches}
    return [s for s in session.searches if id(s) not in done]


def _measured(
    kernels: Sequence[Contest],
    turns: Sequence[Sequence[int | None]],
    measurer: Measurer,
    seconds: float,
) -> bool:
    """Run the program with some contenders of its kernels; whether it runs.

    They are compared with the default compiled as they are, alone: its temporaries are its own, as
    theirs are, and no parts of what the program has for all.

    Args:
        kernels: They carry what is measured.
        turns: For each version of the program, which contender each kernel is.
        measurer: Runs it.
        seconds: How long, for each version.
    """
    versions = [[(k.places, k.usual) for k in kernels if k.usual]]
    versions += [
        [(k.places, path) for k, c in zip(kernels, turn, strict=True) if (path := k.path(c))]
        for turn in turns
    ]
    times = measurer.within(versions, seconds * (1 + len(versions)))
    if times is None:
        return False
    _, usual, *others = times
    for turn, taken in zip(turns, others, strict=True):
        for kernel, contender in zip(kernels, turn, strict=True):
            places = kernel.places & usual.keys() & taken.keys()
            if contender is not None and places and kernel.path(contender):
                sums = [sum(t[p] for p in places) / len(places) for t in (taken, usual)]
                kernel.measured[contender] = Measured(sums[0], sums[1], within=True)
    return True


@dataclass(slots=True)
class Contest:
    """Carries a kernel's contenders, and what each took within the program.

    Attributes:
        searches: Those of the kernel at the same sizes: it may be called with other operands.
        contenders: The fastest, as they were alone.
        usual: The default's executable.
        paths: Their executables; None for one that can't be compiled.
        measured: By contender, what it took; one that did not run has none.
        sure: Contenders that were measured once more since they had won.
        is_lost: Whether contenders ran at their sizes alone before, none of them is faster for all
            sizes, and none is in use.
    """

    searches: tuple[Search, ...]
    contenders: tuple[Fast, ...]
    usual: Path | None = None
    paths: Sequence[Path | None] = ()
    measured: dict[int, Measured] = field(default_factory=dict)
    sure: set[int] = field(default_factory=set)
    is_lost: bool = False

    @property
    def places(self) -> frozenset[Place]:
        """Where the program calls the kernel."""
        return frozenset[Place]().union(*(s.task.places for s in self.searches))

    @property
    def gain(self) -> float:
        """Seconds of a run of the program that the fastest seems to save."""
        saved = 1.0 - min((f.ratio for f in self.contenders), default=1.0)
        return saved * sum((s.default_seconds or 0.0) * s.task.count for s in self.searches)

    def build(self, measurer: Measurer) -> None:
        """Compile the default and the contenders; what did not run yet for all sizes is run.

        Of that, what is no faster than the default is left out, unless it is in use.
        """
        task = self.searches[0].task
        candidates = [Candidate(f.proposal.schedule.trace) for f in self.contenders]
        ran = {point for s in self.searches for point in s.fast if not s.task.takes_sizes}
        doubtful = [k for k, f in enumerate(self.contenders) if f.proposal.point not in ran]
        results = measurer.measure(task, [candidates[k] for k in doubtful])
        wrong = {
            k
            for k, m in zip(doubtful, results, strict=True)
            if m.seconds is None or (m.ratio >= 1.0 and not self.contenders[k].asked)
        }
        right = [k for k in range(len(candidates)) if k not in wrong]
        if not right and task.takes_sizes and not any(f.asked for f in self.contenders):
            self.is_lost = True
            return
        self.usual, *built = measurer.built(
            task, [Candidate(None), *(candidates[k] for k in right)]
        )
        paths = dict(zip(right, built, strict=True))
        self.paths = [paths.get(k) for k in range(len(candidates))]

    def path(self, contender: int | None) -> Path | None:
        """The executable of a contender; None for the default."""
        return None if contender is None else self.paths[contender]

    @property
    def winner(self) -> int | None:
        """The fastest contender; None where none is worth it."""
        worth = {k: m.ratio for k, m in self.measured.items() if m.ratio <= WORTH}
        return min(worth, key=lambda k: worth[k], default=None)

    def drop_doubtful(self) -> None:
        """Say of what won, and was not measured once more, that it takes the default's time."""
        while (winner := self.winner) is not None and winner not in self.sure:
            usual = self.measured[winner].reference
            self.measured[winner] = Measured(usual, usual, within=True)

    def tell(self) -> None:
        """Tell the searches what is left; nothing where the program did not run the kernel."""
        winner = self.winner
        for search in self.searches if self.measured or self.is_lost else ():
            search.best = None if winner is None else self.contenders[winner].proposal
            search.best_ratio = 1.0 if winner is None else self.measured[winner].ratio


def contests(searches: Sequence[Search], count: int) -> list[Contest]:
    """The kernels of which something faster than the default was found, or was in use before.

    Those that seem to gain most are first. A kernel that the program calls at several sizes for one
    input is left out: a run tells what all its calls take.

    Args:
        searches: Of the program's kernels.
        count: How many contenders a kernel has, and what is in use.
    """
    of: dict[tuple[object, ...], list[Search]] = {}
    for search in searches:
        of.setdefault((search.task.identity, search.task.sizes), []).append(search)
    calls = Counter(p for same in of.values() for p in {p for s in same for p in s.task.places})
    found: list[Contest] = []
    for same in of.values():
        if any(calls[p] > 1 for s in same for p in s.task.places):
            continue
        points = {f.proposal.point: f for s in same for f in s.fastest(count)}
        fast = sorted(points.values(), key=lambda f: f.ratio)
        asked = [f for f in fast[count:] if f.asked]
        if fast:
            found.append(Contest(tuple(same), (*fast[:count], *asked)))
    return sorted(found, key=lambda contest: -contest.gain)


def compared(
    build: Build,
    records: Records,
    measurer: Measurer,
    folder: Path,
    seconds: float,
    usual: Records | None = None,
) -> tuple[float, float] | None:
    """Seconds of a call of the program by default and by records, for all sizes together.

    Of some rounds, in each of which memory lies elsewhere, the one whose ratio is in the middle.

    Args:
        build: Compiles it.
        records: How its kernels are laid out.
        measurer: Knows the program, and runs it.
        folder: Where files are made.
        seconds: How long each runs in a round.
        usual: By which records the default is compiled that it is compared with; the measurer's
            program if there are none.

    Returns:
        None where it does not run.
    """
    path, other = folder / "tuned.unity", None if usual is None else folder / "plain.unity"
    try:
        build(records).save(path)
        if other is not None and usual is not None:
            build(usual).save(other)
    except (UnityError, OSError):
        return None
    rounds = [measurer.whole(path, seconds, other) for _ in range(_ROUNDS)]
    known = sorted((r for r in rounds if r is not None), key=lambda r: r[1] / r[0])
    return known[len(known) // 2] if known else None
