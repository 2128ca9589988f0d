"""Backends: all that is particular to a kind of target, as one value.

The compiler asks for a backend by the name of its kind. Ours (`unity.codegen.cpu`) and those of
other packages are found alike: an entry point of the group ``unity.backends``, whose name is the
kind, loaded when the kind is first asked for::

    [project.entry-points."unity.backends"]
    acme = "acme.backend:ACME"

A package that fails to load breaks nothing but its own kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from logging import getLogger
from typing import TYPE_CHECKING, get_args

from unity.arguments import public, public_class
from unity.errors import UnityError
from unity.machine.changed import changed
from unity.machine.target import Target
from unity.options import Precision

if TYPE_CHECKING:  # what backends hold stands on passes, which ask for backends
    from unity.op.registry import OpClass

    from .graph.lower.legalization import Legalization
    from .graph.resolve import ResolveOption
    from .passes import Pipeline
    from .rules.decisions import AppliedRule
    from .schedule import ScheduleRule

log = getLogger(__name__)
GROUP = "unity.backends"
OURS = EntryPoint("cpu", "unity.codegen.cpu:CPU", GROUP)
"""Found without an installation, and by nothing else than its place different from any other."""


@public_class
@dataclass(frozen=True, slots=True)
class Backend:
    """What a kind of target has of its own.

    Attributes:
        name: The kind: ``Target.kind``, and ``compile(..., target=name)``.
        detect: The machine that the name alone stands for, given how many threads it may use; with
            numbers and memories of its own (`Target.machine`, `Target.scopes`).
        pipeline: Its passes, given the backend and a precision; None for `standard_pipeline`, which
            applies the rules below, and which a pipeline of its own may start from.
        legalizations: Kernels of its own for ops, before the ops' own.
        schedule_rules: How kernels are laid out, before the rules of `ScheduleDefault`.
        decide: Which decisions of those rules are to be others on its machines, given the rule with
            its own; None where they stand.
        efficiency: What share of the machine's peak an implementation reaches on a class of ops:
            ``{"engine:acme": {"contraction": 0.7}}``; what `resolve="static"` decides by.
        implementations: What call sites may be resolved to besides our kernels, with ``*``; of
            equals the first is taken.
        resolve: What decides where the user says nothing: see `unity.compile`.
        register: Makes known what is looked up by name: engines, library functions, intrinsics.
    """

    name: str
    detect: Callable[[int | None], Target]
    pipeline: Callable[[Backend, Precision], Pipeline] | None = None
    legalizations: tuple[Legalization, ...] = ()
    schedule_rules: tuple[ScheduleRule, ...] = ()
    decide: Callable[[AppliedRule, Target], Mapping[str, int]] | None = None
    efficiency: Mapping[str, Mapping[OpClass, float]] = field(
        default_factory=dict[str, "Mapping[OpClass, float]"], hash=False
    )
    implementations: tuple[str, ...] = ("library:*", "engine:*")
    resolve: ResolveOption = field(default="tir", hash=False)
    register: Callable[[], None] | None = None

    def machine(self, threads: int | None = None) -> Target:
        """The machine that the name stands for, as `detect` finds it.

        Args:
            threads: How many threads kernels may use; None for as many as it has.

        Raises:
            UnityError: There is none here, or what was found is of another kind.
        """
        try:
            found = self.detect(threads)
        except UnityError:
            raise
        except Exception as error:
            raise UnityError(
                f"no machine for the target {self.name!r}: {type(error).__name__}: {error}"
            ) from error
        if found.kind != self.name:
            raise UnityError(
                f"the backend {self.name!r} detects a target of kind {found.kind!r}",
                hint="the kind of its targets must be its name",
            )
        return found

    def rank(self, implementation: str) -> int | None:
        """Where an implementation stands among those that may be taken; None if it may not.

        >>> from unity.transform import backend_of
        >>> backend_of("cpu").rank("tir"), backend_of("cpu").rank("engine:onnxruntime")
        (-1, 1)
        """
        if implementation.partition(":")[0] in ("tir", "host"):
            return -1
        ranks = (i for i, p in enumerate(self.implementations) if fnmatchcase(implementation, p))
        return next(ranks, None)


BACKENDS: dict[str, Backend] = {}
"""Those loaded or registered so far, by name."""


@public
def register_backend(backend: Backend) -> Backend:
    """Make a backend known in this process; one of the same name is replaced.

    ``register_backend(replace(backend_of("cpu"), efficiency=...))`` changes some of it.
    """
    changed(backend.name)
    return _registered(backend)


@public
def backend_of(kind: str) -> Backend:
    """The backend of a kind of target, loaded if it is asked for the first time.

    Raises:
        UnityError: There is none, its package can't be loaded, or several packages have one.
    """
    known = BACKENDS.get(kind)
    if known is not None:
        return known
    if kind == OURS.name:  # without a look at all packages that are installed
        return _loaded(OURS)
    found = offers().get(kind)
    if found is None:
        there = ", ".join(sorted({*BACKENDS, *offers()}))
        raise UnityError(
            f"no target {kind!r}",
            hint=f"there are: {there}; packages add others by entry points of {GROUP!r}. Another "
            'machine is described: unity.Target("cpu", "x86_64-unknown-linux-gnu", "haswell", '
            '("avx", "avx2", "fma"), vector_bits=256)',
        )
    first, *others = found
    if others:
        raise UnityError(
            f"several packages have a backend {kind!r}: {', '.join(map(package_of, found))}",
            hint="uninstall one, or choose by register_backend",
        )
    return _loaded(first)


def offers() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The backends that can be asked for, by name; none is loaded by asking."""
    found: dict[str, list[EntryPoint]] = {OURS.name: [OURS]}
    for entry in entry_points(group=GROUP):
        if entry.name == OURS.name:
            log.warning("%s may not replace the backend %r", package_of(entry), entry.name)
        else:
            found.setdefault(entry.name, []).append(entry)
    return {name: tuple(entries) for name, entries in found.items()}


def package_of(entry: EntryPoint) -> str:
    """The package that an entry point is of, for messages: ``acme-unity 1.0``."""
    return "Unity itself" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _registered(backend: Backend) -> Backend:
    if backend.register is not None:
        backend.register()
    BACKENDS[backend.name] = backend
    return backend


def _loaded(entry: EntryPoint) -> Backend:
    where = f"the backend {entry.name!r} of {package_of(entry)}"
    try:
        found: object = entry.load()
    except Exception as error:  # whatever a foreign module does when it is imported
        raise UnityError(
            f"{where} can't be loaded: {type(error).__name__}: {error}",
            hint=f"its entry point is {entry.value}; other backends work without it",
        ) from error
    if not isinstance(found, Backend):
        raise UnityError(f"{where} is no Backend but {type(found).__name__}: {entry.value}")
    if found.name != entry.name:
        raise UnityError(f"{where} calls itself {found.name!r}", hint="the names must agree")
    try:
        return _registered(found)
    except Exception as error:
        raise UnityError(f"{where} can't be registered: {type(error).__name__}: {error}") from error


def check_precision(precision: str) -> None:
    """Refuse what is no `Precision`.

    Raises:
        UnityError: It is none.
    """
    if precision not in get_args(Precision):
        known = ", ".join(map(repr, get_args(Precision)))
        raise UnityError(f"no precision {precision!r}", hint=f"there are: {known}")
