"""Policies: how a candidate is chosen for each site, and what users say about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from unity.errors import UnityError
from unity.op.table import OPS

from ...pattern import Graph, Pattern, match_at
from .call_site import ENGINE, LIBRARY, OURS, CallSite, Candidate, is_ours
from .engine import engine_of
from .forms import FORMS, known_form
from .library import LIBRARY_FUNCTIONS

Chooser: TypeAlias = Callable[[CallSite, Sequence[Candidate]], "Candidate | str"]
"""A user's choice: the site and the candidates that can be taken -> one, or its name."""
Base: TypeAlias = Literal["tir", "static", "measure"]
Override: TypeAlias = "tuple[str | Pattern, str]"
Resolve: TypeAlias = (
    "Base | str | Chooser | Mapping[str, str] | Mapping[Pattern, str] | Sequence[Override]"
)
"""A policy by name, one implementation for all, a function, or overrides: see `policy_of`."""
ACCEPTED = (
    '"tir", "static", "measure", an implementation ("engine:onnxruntime"), a function '
    'choose(site, candidates), or overrides: {"main/conv1": "tir"} or a list of pairs'
)
"""What `policy_of` takes, in a hint."""
ESTIMATED = "least estimated time"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a site is resolved to."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """How sites are resolved.

    Attributes:
        base: What decides where nothing else does.
        overrides: Names of sites (with ``*``) or ops, or patterns, each with an implementation;
            the first that fits counts.
        chooser: A user's function, asked before `base`.
    """

    base: Base = "tir"
    overrides: tuple[Override, ...] = ()
    chooser: Chooser | None = None

    def considers(self, implementation: str) -> bool:
        """Whether a choice may fall on an implementation that is not ours.

        Whoever can't be chosen need not be asked: an engine's answer may take an export of the
        call.
        """
        if self.base != "tir" or self.chooser is not None:
            return True
        named = [said for _, said in self.overrides]
        return any(implementation == n or implementation.startswith(f"{n}.") for n in named)

    def choose(self, site: CallSite, graph: Graph) -> Choice:
        """The choice of a site.

        Raises:
            UnityError: An override names what can't be taken here, or the user's function gives
                something that is no candidate.
        """
        said = self.said(site, graph)
        if said is not None:
            return said
        legal = site.legal()
        if self.chooser is not None:
            given = self._chosen(site, legal)
            name = given if isinstance(given, str) else getattr(given, "implementation", given)
            found = site.candidate(name) if isinstance(name, str) else None
            taken = found if found is not None and found.legal else None
            if taken is None:
                known = ", ".join(c.implementation for c in legal)
                why = f": {found.row.why_not}" if found is not None and not found.legal else ""
                raise UnityError(
                    f"{site.name}: the function chose {name!r}{why}", hint=f"it may choose {known}"
                )
            return Choice(taken, "the function given chose it")
        first = legal[0]
        if self.base == "static":
            return self.estimated(site)
        return Choice(first, "our own kernel is the default")

    def _chosen(self, site: CallSite, legal: Sequence[Candidate]) -> object:
        """What a user's function gives for a site.

        Raises:
            UnityError: It raised.
        """
        assert self.chooser is not None
        try:
            return self.chooser(site, legal)
        except Exception as error:  # whatever a user's code raises
            what = f"{type(error).__name__}: {error}"
            raise UnityError(
                f"{site.name}: the function given to resolve failed: {what}",
                hint="it is called as choose(site, candidates)",
            ) from error

    def estimated(self, site: CallSite, refused: Collection[str] = ()) -> Choice:
        """The choice by estimate.

        Args:
            site: The site.
            refused: What can't be taken where it stands.
        """
        left = [c for c in site.contenders() if c.implementation not in refused]
        best = min(left, key=lambda c: c.row.seconds or 0.0)
        return Choice(best, ESTIMATED if not refused else f"{ESTIMATED} of what can be here")

    def unfulfilled(self, sites: Sequence[tuple[CallSite, Graph]]) -> list[str]:
        """What overrides of many sites found none to fit or none to take, in words.

        Args:
            sites: All sites of the program, each with the index of its body.
        """
        found: list[str] = []
        for key, implementation in self.overrides:
            fitting = [s for s, graph in sites if _fits(key, s, graph)]
            meant = [s for s in fitting if not s.glue]
            if any((c := s.candidate(implementation)) is not None and c.legal for s in meant):
                continue
            what = f"{key!r}" if isinstance(key, str) else "a pattern"
            if not fitting:
                found.append(f"override {what}: nothing in the program fits it")
                continue
            reasons = Counter(_why_not(s, implementation) for s in meant)
            why = reasons.most_common(1)[0][0] if reasons else "only views fit it"
            found.append(f"override {what}: {implementation!r} is taken nowhere: {why}")
        return found

    def said(self, site: CallSite, graph: Graph) -> Choice | None:
        """What the overrides say of a site; None if nothing.

        Raises:
            UnityError: An override names what can't be taken here.
        """
        for key, implementation in self.overrides:
            if _fits(key, site, graph):
                found = _override(key, implementation, site)
                if found is not None:
                    return found
        return None

    def check(self, sites: Sequence[CallSite], written: Mapping[str, str]) -> None:
        """Refuse overrides that name a site which a program has not; ops and ``*`` may fit none.

        Args:
            sites: All sites of the program.
            written: Its calls that say themselves who computes them: name and implementation.

        Raises:
            UnityError: There is no site of that name, or there is nothing to choose.
        """
        for key, _ in self.overrides:
            if not isinstance(key, str) or set("*?[") & set(key) or key in OPS:
                continue
            if not any(_is_named(key, s) for s in sites):
                said = [v for name, v in written.items() if key in (name, name.partition("/")[2])]
                if said:
                    raise UnityError(
                        f"resolve names {key!r}, for which the program calls {said[0]} itself",
                        hint="call an operator there, whose implementation is chosen",
                    )
                names = [n for s in sites for n in (s.name, s.var.name)]
                near = get_close_matches(key, [*names, *{s.op_name for s in sites}], 3)
                hint = f"did you mean {', '.join(near)}? " if near else ""
                raise UnityError(
                    f"resolve names {key!r}, which is neither a call site nor an op",
                    hint=f"{hint}Executable.explain lists the sites",
                )


def _why_not(site: CallSite, implementation: str) -> str:
    found = site.candidate(implementation)
    if found is None:
        return f"it is no candidate for {site.op_name}"
    return found.row.why_not or "it is"


def policy_of(resolve: Resolve | None) -> Policy:
    """A policy from what users write.

    Args:
        resolve: ``"tir"`` (our kernels, the default), ``"static"``, ``"measure"``; an
            implementation for every site that has it (``"library:openblas"``,
            ``"engine:onnxruntime"``, ``"tir:direct"``); a function ``choose(site, candidates)``; or
            overrides as a mapping or pairs: a site's name (``"main/conv1"``, ``"main/*"``), an op's
            name (``"matmul"``) or a pattern, and the implementation. The value of ``"*"`` may be a
            policy.

    Raises:
        UnityError: It is none of these, or names an engine or a library that is not there.
    """
    if resolve is None:
        return Policy()
    if isinstance(resolve, str):
        return _named(resolve)
    if callable(resolve):
        return Policy(chooser=resolve)
    if not isinstance(resolve, Mapping | Sequence):
        raise UnityError(f"resolve={resolve!r}", hint=ACCEPTED)
    pairs: list[Override] = [*(resolve.items() if isinstance(resolve, Mapping) else resolve)]
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise UnityError(f"resolve has {pair!r}, which is no pair", hint=ACCEPTED)
    base: Base = "tir"
    overrides: list[Override] = []
    for key, value in pairs:
        if key == "*" and value in get_args(Base):
            base = _named(value).base
        else:
            _check_name(str(value))
            overrides.append((key, value))
    overrides.sort(key=lambda pair: pair[0] == "*")  # what is said of all counts last
    return Policy(base, tuple(overrides))


def _named(name: str) -> Policy:
    match name:
        case "tir" | "static" | "measure":
            return Policy(name)
        case _:
            _check_name(name)
            return Policy("tir", (("*", name),))


def _check_name(name: str) -> None:
    if not is_ours(name) and not name.startswith((LIBRARY, ENGINE)):
        raise UnityError(
            f"no implementation {name!r}",
            hint='"tir", "library:<name>", "engine:<name>"; policies are "static" and "measure"',
        )
    if name.startswith(OURS) and not known_form(name.removeprefix(OURS)):
        there = ", ".join(f"{OURS}{form}" for form in FORMS)
        raise UnityError(f"our kernels have no form {name!r}", hint=f"there are: {there}")
    if name.startswith(ENGINE):
        engine_of(name.removeprefix(ENGINE))
    elif name.startswith(LIBRARY):
        _check_library(name.removeprefix(LIBRARY))


def _check_library(name: str) -> None:
    """Refuse a library, or a function of one, that is not known or can't be used here."""
    known = LIBRARY_FUNCTIONS.values()
    meant = [f for f in known if f.name == name or f.name.startswith(f"{name}.")]
    if not meant:
        there = ", ".join(f.name for f in known) or "(none)"
        raise UnityError(f"no library function {name!r} is registered", hint=f"there are: {there}")
    reasons = [f.missing() for f in meant]
    if None not in reasons:
        raise UnityError(f"the library {name!r} can't be used: {reasons[0]}")


def _fits(key: str | Pattern, site: CallSite, graph: Graph) -> bool:
    if not isinstance(key, str):
        return match_at(key, graph, site.var) is not None
    return key == site.op_name or _is_named(key, site)


def _is_named(key: str, site: CallSite) -> bool:
    names = (site.name, *site.origins)
    return any(fnmatchcase(n, key) or fnmatchcase(n.rpartition("/")[2], key) for n in names)


def _override(key: str | Pattern, implementation: str, site: CallSite) -> Choice | None:
    """The choice that an override makes; None where it speaks of many and this one can't."""
    said = f"override {key!r}" if isinstance(key, str) else "override by pattern"
    found = site.candidate(implementation)
    if found is not None and found.legal:
        return Choice(found, said)
    # A key for many sites is meant for those that can; one that names a site is meant.
    if not isinstance(key, str) or "*" in key or key in OPS:
        return None
    why = "it is no candidate" if found is None else found.row.why_not
    known = ", ".join(c.implementation for c in site.legal())
    raise UnityError(
        f"{site.name} can't be resolved to {implementation!r}: {why}", hint=f"it may be {known}"
    )
