"""Resolve: every call site of an operator gets its implementation, and a row that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unity.ir.dims import Symbol
from unity.ir.graph import Binding, Body, Call, Expr, Function, Tuple, TupleGet, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.symbols.mentioned import body_mentions
from unity.ir.visit import bodies_of, map_body, type_symbols
from unity.ir.visiting.visit_graph import map_bodies
from unity.runtime.explanation import CandidateRow, Explanation, RoadRow, SiteRow

from ...passes import Context, Pass
from ...pattern import Graph
from ..layout.blockable import standing_alone
from ..names import Names
from .call_site import ENGINE, HOST, LIBRARY, OURS, TIR, CallSite, everything, sites_of
from .cost import CALL_SECONDS
from .needs import needs_of
from .outline import library_call, outputs_of, refusal, with_regions
from .policy import ESTIMATED, Choice, Policy
from .regions import regions
from .written_calls import written_choices, written_rows

EXPLANATION = "resolution"
"""Name of the report: the `Explanation`, as JSON."""
NUMPY = "numpy runs it"
NOT_ASKED = 'libraries and engines were not asked; resolve="static" asks them'


@dataclass(frozen=True, slots=True)
class Resolve(Pass):
    """Chooses among our kernels, library functions and engines for every call of an operator.

    Sites given to one engine are joined into regions, as large as they can be, each a private
    function and one call; a library's function stands for all that its pattern matched. What
    remains is ours. The explanation is the context's report ``resolution``.

    >>> from unity.codegen.library import register_libraries
    >>> from unity.script import parse, print_module
    >>> register_libraries()
    >>> from unity.transform.graph.resolve import Resolve, policy_of
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 4, 8], w: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
    ...     with R.dataflow():
    ...         y = R.matmul(x, w)
    ...         z = R.nn.relu(y)
    ...     return z
    ... ''')
    >>> after = Resolve(policy_of({"matmul": "library:openblas"}))(before, Context())
    >>> print(print_module(after), end="")  # doctest: +NORMALIZE_WHITESPACE
    @script.function
    def main(x: f32[Tensor, 4, 8], w: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
        with R.dataflow():
            y = R.call_library("openblas.gemm", (x, w), out=f32[Tensor, 4, 2],
                               attrs={"transposed": False})
            z = R.nn.relu(y)
        return z

    Attributes:
        policy: What decides.
        reasons: Why, for sites whose choice was made elsewhere (by measuring), by name.
        roads: What was measured of the whole program.
        partial: Whether the program is a part of one, so that names may be of sites elsewhere.
        failed: Implementations that were taken and failed, each with the reason.
        barred: What failed at some sites alone: by site and implementation, the reason.
        forms: Whether the passes to come know several forms of our kernels (`forms.py`): those of
            narrow floats don't.
        measured: Seconds that were measured, by site and implementation.
    """

    policy: Policy = field(default_factory=Policy)
    reasons: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    roads: tuple[RoadRow, ...] = ()
    partial: bool = False
    failed: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    barred: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]], hash=False
    )
    forms: bool = True
    measured: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]], hash=False
    )

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions."""
        names = Names(module)
        scopes = {n: _scopes(n, f, self, ctx, module) for n, f in module.graph_functions().items()}
        resolvers = [r for found in scopes.values() for r in found]
        notes = [NOT_ASKED] if self.policy == Policy() and not self.roads else []
        if not self.partial:
            self.policy.check([s for r in resolvers for s in r.sites], written_choices(module))
            notes += self.policy.unfulfilled([(s, r.graph) for r in resolvers for s in r.sites])
        functions: dict[str, Function] = {}
        for name, found in scopes.items():
            bodies = {id(r.body): r.run(names) for r in found}
            for r in found:
                functions.update(r.made)
            function = module.graph_functions()[name]
            body = _rebuilt(function.body, bodies)
            if body is not function.body:
                functions[name] = replace(function, body=body)
        rows = tuple(row for r in resolvers for row in r.rows)
        explanation = Explanation(rows, self.roads, self.name_of_policy, tuple(notes))
        ctx.reports[EXPLANATION] = explanation.to_json()
        return module.with_(functions)

    def without(self, implementation: str, why: str) -> Resolve | None:
        """The same without an implementation that failed; None if the user asked for that one."""
        named = [value for _, value in self.policy.overrides]
        asked = any(
            name == implementation or name.startswith(f"{implementation}.") for name in named
        )
        if asked or self.policy.base != "static" or implementation in self.failed:
            return None
        return replace(self, failed={**self.failed, implementation: why})

    def without_at(self, implementation: str, sites: Mapping[str, str]) -> Resolve:
        """The same without an implementation at some sites, each with the reason.

        What was said of many sites is then left to us at these; what names one of them is refused.
        """
        barred = dict(self.barred)
        for site, why in sites.items():
            barred[site] = {**barred.get(site, {}), implementation: why}
        return replace(self, barred=barred)

    @property
    def name_of_policy(self) -> str:
        """What the explanation calls the policy."""
        if self.roads:
            return "measure"
        if self.policy.chooser is not None:
            return "function"
        base, said = self.policy.base, self.policy.overrides
        if said and said[0][0] == "*":
            return said[0][1]
        return f"{base} with overrides" if said else base


def _scopes(
    name: str, function: Function, step: Resolve, ctx: Context, module: IRModule
) -> list[_Resolver]:
    """What carries a function's body through, and each body nested in it: branches, loops."""
    alone = standing_alone(function, ctx.target) if step.forms else frozenset[Var]()
    found: list[_Resolver] = []

    def enter(body: Body, known: frozenset[Symbol]) -> None:
        found.append(_Resolver(name, replace(function, body=body), known, alone, step, ctx, module))
        inside = known | body_mentions(body)
        for block in body.blocks:
            for binding in block.bindings:
                for inner in bodies_of(binding.value):
                    enter(inner, inside)

    enter(function.body, frozenset(s for p in function.params for s in type_symbols(p.type)))
    return found


def _rebuilt(body: Body, resolved: Mapping[int, Body]) -> Body:
    """A body as it was resolved, and so the bodies in it, by identity."""

    def binding(b: Binding) -> Binding:
        value = map_bodies(b.value, lambda inner: _rebuilt(inner, resolved))
        return b if value is b.value else replace(b, value=value)

    return map_body(resolved[id(body)], binding, lambda result: result)


class _Resolver:
    """Carries one body through, without those nested in it."""

    def __init__(
        self,
        name: str,
        function: Function,
        known: frozenset[Symbol],
        alone: frozenset[Var],
        step: Resolve,
        ctx: Context,
        module: IRModule,
    ) -> None:
        self.written = written_rows(name, function.body, module)
        self.body = function.body
        self.function = function
        self.step = step
        self.graph = Graph.of(function)
        self.needs = needs_of(self.body, known)
        by_default = step.policy == Policy() and not step.roads
        errors = not by_default  # then `ConvertWinograd` looks at them alone
        asks = everything if step.roads else step.policy.considers
        sites = sites_of(name, function, ctx.target, step.forms, errors, asks, alone)
        self.sites = [s.without({**step.failed, **step.barred.get(s.name, {})}) for s in sites]
        self.by_var = {s.var: s for s in self.sites}
        self.choices: dict[Var, Choice] = {}
        self.covered: dict[Var, Var] = {}
        self.refused: dict[Var, set[str]] = {}
        self.rows: list[SiteRow] = []
        self.made: dict[str, Function] = {}

    def run(self, names: Names) -> Body:
        """The body resolved; `made` are then the functions of engines."""
        for site in self.sites:
            if site.candidates and not site.glue:
                self.choices[site.var] = self.chosen(site)
        groups = self.settled()
        function, self.made, inside = with_regions(
            self.function, self.graph, groups, names, self.needs
        )
        function = self.with_calls(function)
        self.explain(inside)
        return function.body

    def chosen(self, site: CallSite) -> Choice:
        """What the policy chooses for a site, and what can't be had there."""
        choice = self.step.policy.choose(site, self.graph)
        if choice.candidate.implementation == HOST:
            choice = Choice(choice.candidate, f"{NUMPY}: {site.no_kernel}")
        barred = self.step.barred.get(site.name, {})
        told = "".join(f"; {name} can't have it: {why}" for name, why in barred.items())
        return Choice(choice.candidate, choice.reason + told) if told else choice

    def cover(self) -> None:
        """What a library call computes on its way is no site of its own any more."""
        for site in self.sites:
            choice = self.choices.get(site.var)
            match = None if choice is None else choice.candidate.match
            for inner in () if match is None else match.inner:
                inside = self.by_var.get(inner)
                ours = None if inside is None else inside.candidate(TIR)
                if ours is not None:
                    self.covered[inner] = site.var
                    self.choices[inner] = Choice(ours, f"part of the library call {site.var.name}")

    def engine(self, var: Var) -> str | None:
        """The engine that a variable was given to."""
        choice = self.choices.get(var)
        if choice is None or not choice.candidate.implementation.startswith(ENGINE):
            return None
        return choice.candidate.implementation.removeprefix(ENGINE)

    def glue(self) -> None:
        """Views and tuples go with what computes them, or else with all that use them."""
        for var in self.graph.values:
            site = self.by_var.get(var)
            if site is not None and site.glue and site.candidates and var not in self.covered:
                first = next((a for a in site.call.args if isinstance(a, Var)), None)
                near = self.engine(first) if first is not None else None
                users = {self.engine(u) for u in self.graph.using(var)}
                only = users.pop() if len(users) == 1 and var not in self.graph.results else None
                wanted = near or only
                found = None if wanted is None else site.candidate(f"{ENGINE}{wanted}")
                refused = self.refused.get(var, ())
                if found is None or not found.legal or found.implementation in refused:
                    found = site.candidate(TIR)
                if found is not None:
                    host = found.implementation == HOST
                    why = f"{NUMPY}: {site.no_kernel}" if host else "goes with its neighbour"
                    self.choices[var] = Choice(found, why)

    def labels(self) -> dict[Var, str]:
        """The engine of each variable that has one; tuples taken apart go with their makers."""
        found: dict[Var, str] = {}
        for var, value in self.graph.values.items():
            engine = self.engine(var)
            if engine is None and isinstance(value, TupleGet) and isinstance(value.value, Var):
                engine = found.get(value.value)
            if engine is None and isinstance(value, Tuple):
                users = {self.engine(u) for u in self.graph.using(var)}
                engine = users.pop() if len(users) == 1 else None
            if engine is not None:
                found[var] = engine
        return found

    def settled(self) -> list[tuple[str, list[Var]]]:
        """The regions when all choices can be: what an engine is refused goes to the second best.

        A second best by estimate may be another engine, whose regions are looked at in turn; what
        was refused once is not asked for again, so this ends.
        """
        while True:
            self.covered.clear()
            self.cover()
            self.glue()
            groups, changed = self.regions()
            if not changed:
                return groups

    def regions(self) -> tuple[list[tuple[str, list[Var]]], bool]:
        """The regions, each with its engine, and whether any can't be or doesn't pay."""
        changed = False
        labels = self.labels()
        kept: list[tuple[str, list[Var]]] = []
        places = {
            b.var: i for i, block in enumerate(self.function.body.blocks) for b in block.bindings
        }
        where = {v: (engine, places[v]) for v, engine in labels.items()}
        for members in regions(list(self.needs), self.needs, where):
            why = self.declined(members)
            if why is None:
                kept.append((labels[members[0]], members))
                continue
            for var in members:
                if var in self.choices:
                    changed = True
                    self.choices[var] = self.instead(self.by_var[var], why)
        return kept, changed

    def instead(self, site: CallSite, why: str) -> Choice:
        """What a site becomes whose region is declined."""
        refused = self.refused.setdefault(site.var, set())
        refused.add(self.choices[site.var].candidate.implementation)
        if self.step.policy.base == "static" and not site.glue:
            second = self.step.policy.estimated(site, refused)
            return Choice(second.candidate, f"{second.reason}: {why}")
        ours = site.candidate(TIR)
        assert ours is not None
        return Choice(ours, why)

    def declined(self, members: list[Var]) -> str | None:
        """Why a region is not given to its engine; None if it is."""
        sites = [self.by_var[v] for v in members if v in self.by_var]
        if all(s.glue for s in sites) or not outputs_of(members, self.graph):
            return "an engine is not called for views alone"
        why = refusal(members, self.graph)
        if why is not None:
            return f"the region can't be cut out: {why}"
        if self.step.policy.base != "static":
            return None
        chosen = [(s, self.choices[s.var]) for s in sites if s.var in self.choices]
        if not all(c.reason.startswith(ESTIMATED) or s.glue for s, c in chosen):
            return None
        ours = sum(_seconds(s, TIR) for s, _ in chosen)
        call = CALL_SECONDS["engine"]
        theirs = sum(c.candidate.row.seconds or 0.0 for _, c in chosen) + call
        return None if theirs < ours else "the engine's call would cost more than it gains"

    def with_calls(self, function: Function) -> Function:
        """The function with library calls, and calls of ops that say how they are computed."""
        calls: dict[Var, Expr] = {}
        for var, choice in self.choices.items():
            name, value = choice.candidate.implementation, self.graph.values[var]
            if name.startswith(LIBRARY):
                calls[var] = library_call(choice.candidate, var)
            elif name.startswith(OURS) and isinstance(value, Call):
                form = name.removeprefix(OURS)
                if value.attrs.get("algorithm") != form:
                    calls[var] = replace(value, attrs=value.attrs.with_(algorithm=form))
        if not calls:
            return function

        def changed(b: Binding) -> Binding:
            new = calls.get(b.var)
            return replace(b, value=new) if new is not None and isinstance(b, VarBinding) else b

        blocks = tuple(
            replace(block, bindings=tuple(map(changed, block.bindings)))
            for block in function.body.blocks
        )
        return replace(function, body=replace(function.body, blocks=blocks))

    def candidates(self, site: CallSite) -> tuple[CandidateRow, ...]:
        """The rows of a site's candidates, with what was measured of them."""
        known = self.step.measured.get(site.name, {})
        return tuple(_known_seconds(c.row, known) for c in site.candidates)

    def explain(self, inside: Mapping[Var, str]) -> None:
        """A row for each site, and for each call as it is written, in the program's order."""
        rows: dict[Var, SiteRow] = dict(self.written)
        for site in self.sites:
            choice = self.choices.get(site.var)
            assert choice is not None, site.name
            of = self.choices[self.covered.get(site.var, site.var)]
            implementation, reason = of.candidate.implementation, choice.reason
            rows[site.var] = SiteRow(
                site.name,
                site.op_name,
                site.place,
                site.shapes,
                implementation,
                self.step.reasons.get(site.name, reason),
                inside.get(site.var, ""),
                self.candidates(site),
            )
        self.rows = [
            rows[b.var] for block in self.body.blocks for b in block.bindings if b.var in rows
        ]


def _known_seconds(row: CandidateRow, known: Mapping[str, float]) -> CandidateRow:
    seconds = known.get(row.implementation)
    return row if seconds is None else replace(row, seconds=seconds, measured=True)


def _seconds(site: CallSite, implementation: str) -> float:
    found = site.candidate(implementation)
    return 0.0 if found is None or found.row.seconds is None else found.row.seconds
