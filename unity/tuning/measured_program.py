"""A program to be measured: compiled in several ways, and run by turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from unity.errors import UnityError
from unity.ir.graph import Var
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.executable import Executable
from unity.transform.graph.layout.blockable import standing_alone
from unity.transform.graph.resolve import CallSite, Policy, Resolve, scopes_of, sites_of
from unity.transform.graph.resolve.call_site import everything, is_ours
from unity.transform.pattern import Graph

from .agreement import NARROW_TOLERANCE, tolerance_of
from .kernel_times import KernelTimes, kernel_times
from .runs import ProgramRuns, RunsHere
from .timing import inputs_for, sizes_for

Build = Callable[[IRModule, Resolve], Executable]
"""Compiles a program with its sites resolved so."""
Said = tuple[str, str]
"""A site by name, or ``*``, and its implementation."""


class MeasuredProgram:
    """Carries what was compiled of a program, and why some was not.

    Args:
        module: The program as `Resolve` will see it.
        name: Its function.
        target: This machine.
        build: Compiles it.
        step: How its sites are resolved, but for the policy.
        base: What the user said besides ``"measure"``.
        sizes: Values of symbols to measure at; times are added up.
        narrow: Whether products round their operands to 16 bits, so that results may differ more.
        others: Whether libraries and engines are asked, too.
    """

    def __init__(
        self,
        module: IRModule,
        name: str,
        target: Target,
        build: Build,
        step: Resolve,
        base: Policy,
        sizes: Sequence[Mapping[str, int]],
        narrow: bool = False,
        *,
        others: bool = True,
    ) -> None:
        self.module = module
        self.name = name
        self.target = target
        self.base = base
        self.sizes = sizes
        self._build = build
        self._step = step
        self.function = module.graph_functions()[name]
        self.scopes = tuple((f, Graph.of(f)) for f in scopes_of(self.function))
        self.sites: list[CallSite] = []
        self._graphs: dict[str, Graph] = {}
        alone = standing_alone(self.function, target) if step.forms else frozenset[Var]()
        for scope, graph in self.scopes:
            asks = everything if others else is_ours
            inside = sites_of(name, scope, target, step.forms, asks=asks, alone=alone)
            self._graphs.update((s.name, graph) for s in inside)
            self.sites += inside
        self.free = {s.name for s in self.sites if self._is_free(s)}
        self.compiled: set[str] = set()
        self.closed: dict[str, str] = {}
        self.tolerance = NARROW_TOLERANCE if narrow else tolerance_of(self.function)
        self.runs: ProgramRuns = RunsHere(lambda: self.inputs, self.tolerance)

    @cached_property
    def inputs(self) -> list[list[object]]:
        """Arguments to run on, for each assignment of sizes."""
        return [inputs_for(self.function, sizes_for(self.function, s)) for s in self.sizes]

    def _is_free(self, site: CallSite) -> bool:
        """Whether nobody said what a site is to be."""
        given = not site.glue and bool(site.candidates) and self.base.chooser is None
        return given and self.base.said(site, self._graphs[site.name]) is None

    def resolved(self, overrides: Sequence[Said]) -> Resolve:
        """The step by some overrides, besides what the user said."""
        policy = Policy("tir", (*self.base.overrides, *overrides), self.base.chooser)
        return replace(self._step, policy=policy, partial=True)

    def choices(self, overrides: Sequence[Said]) -> dict[str, str]:
        """What each site becomes by some overrides."""
        policy = self.resolved(overrides).policy
        return {
            s.name: policy.choose(s, self._graphs[s.name]).candidate.implementation
            for s in self.sites
            if s.candidates and not s.glue
        }

    def compile(self, name: str, overrides: Sequence[Said]) -> bool:
        """Compile it one way and run it once; if that fails or differs from ours, note why."""
        try:
            made = self._build(self.module, self.resolved(overrides))
            why = self.runs.take(name, made)
        except UnityError as error:
            why = error.message
        if why is not None:
            self.closed[name] = why
            return False
        self.compiled.add(name)
        return True

    def run(self, name: str) -> None:
        """Run what was compiled once, at all sizes."""
        self.runs.run(name)

    def may_be(self, name: str, implementation: str) -> bool:
        """Whether a site may have an implementation."""
        site = next(s for s in self.sites if s.name == name)
        candidate = site.candidate(implementation)
        return candidate is not None and candidate.legal

    def forget(self) -> None:
        """Let go what was compiled, and its results."""
        self.compiled.clear()
        self.runs.forget()

    def times(self, names: Sequence[str], seconds: float) -> dict[str, float]:
        """What runs of some of what was compiled take, all in turns."""
        return dict(zip(names, self.runs.times(names, seconds), strict=True))

    def kernels(self, names: Sequence[str]) -> dict[str, KernelTimes]:
        """What each kernel takes in some of what was compiled, which run by turns."""
        graphs = [graph for _, graph in self.scopes]
        calls = self.runs.kernels(names)
        return {n: kernel_times(c, graphs) for n, c in zip(names, calls, strict=True)}
