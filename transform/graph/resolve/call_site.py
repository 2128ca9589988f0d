"""Call sites and what each may be resolved to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unity.errors import UnityError, place_of
from unity.ir.graph import Call, Expr, Function, Op, Tuple, Var
from unity.ir.lattice import atom_type
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import bodies_of
from unity.machine.target import Target
from unity.op.table import OPS
from unity.runtime.explanation import CandidateRow

from ...backend import Backend, backend_of
from ...pattern import Graph, Match, match_at
from ..layout.blockable import standing_alone
from ..lower.without_kernel import why_no_kernel
from ..origins import origins_of
from ..symbols import is_concrete, tensor_fields
from ..views import VIEWS
from .cost import estimate
from .engine import ENGINES, Engine, OpSite
from .forms import Form, forms_of
from .library import LIBRARY_FUNCTIONS, LibraryFunction

TIR = "tir"
HOST = "host"
"""Ours where there is no kernel: numpy, called from the program."""
OURS = "tir:"
LIBRARY, ENGINE = "library:", "engine:"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to compute a site: see `CandidateRow`; a library's also knows what it stands for."""

    row: CandidateRow
    function: LibraryFunction | None = None
    match: Match | None = None

    @property
    def implementation(self) -> str:
        """Its name."""
        return self.row.implementation

    @property
    def legal(self) -> bool:
        """Whether it can be taken."""
        return self.row.why_not is None


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of an operator in a dataflow block.

    Attributes:
        name: ``function/variable``.
        var: What it computes.
        call: The call.
        glue: Whether it only rearranges types (a reshape): it goes where its neighbours go.
        no_kernel: Why numpy computes it if it is ours; None if a kernel does.
        candidates: Who may compute it.
        origins: Its names in the functions that it was inlined from.
    """

    name: str
    var: Var
    call: Call
    op: OpSite
    glue: bool
    no_kernel: str | None = None
    candidates: tuple[Candidate, ...] = field(default=())
    origins: tuple[str, ...] = ()

    @property
    def op_name(self) -> str:
        """The operator."""
        assert isinstance(self.call.callee, Op)
        return self.call.callee.name

    @property
    def place(self) -> str:
        """Where it comes from."""
        return place_of(self.call.span or self.var.span)

    @property
    def shapes(self) -> str:
        """Its types, as text."""
        return f"{', '.join(map(str, self.op.args))} -> {self.op.result}"

    def legal(self) -> list[Candidate]:
        """The candidates that can be taken; the first is ours, in the form that we prefer."""
        return [c for c in self.candidates if c.legal]

    def contenders(self) -> list[Candidate]:
        """Those that an estimate chooses among: our preferred form, and what is not ours."""
        legal = self.legal()
        return [c for c in legal if c is legal[0] or not is_ours(c.implementation)]

    def candidate(self, implementation: str) -> Candidate | None:
        """A candidate by name, or the first that can be taken of those whose names begin so.

        ``library:openblas`` is any of its functions, ``tir`` the form of ours that comes first, or
        `HOST` where there is no kernel.
        """
        for c in self.candidates:
            if c.implementation == implementation:
                return c
        if implementation == TIR and self.no_kernel is not None:
            return self.candidate(HOST)
        heads = tuple(implementation + mark for mark in (".", ":"))
        begun = [c for c in self.candidates if c.implementation.startswith(heads)]
        return next((c for c in begun if c.legal), begun[0] if begun else None)

    def without(self, failed: Mapping[str, str]) -> CallSite:
        """The site with the candidates of some implementations ruled out, each for its reason."""
        kept = tuple(_ruled_out(c, failed) for c in self.candidates)
        return replace(self, candidates=kept) if kept != self.candidates else self


def _ruled_out(candidate: Candidate, failed: Mapping[str, str]) -> Candidate:
    name = candidate.implementation
    for implementation, why in failed.items():
        if candidate.legal and (name == implementation or name.startswith(f"{implementation}.")):
            return replace(candidate, row=replace(candidate.row, why_not=why))
    return candidate


def is_ours(implementation: str) -> bool:
    """Whether our own kernels are meant, or what runs where there is none."""
    return implementation in (TIR, HOST) or implementation.startswith(OURS)


def everything(implementation: str) -> bool:
    """Every library and every engine is asked."""
    return True


def scopes_of(function: Function) -> Iterator[Function]:
    """A function, and the same with each body nested in it for its own: branches, loops."""
    yield function
    for block in function.body.blocks:
        for binding in block.bindings:
            for inner in bodies_of(binding.value):
                yield from scopes_of(replace(function, body=inner))


def sites_of(
    name: str,
    function: Function,
    target: Target,
    forms: bool = True,
    errors: bool = True,
    asks: Callable[[str], bool] = everything,
    alone: frozenset[Var] | None = None,
) -> list[CallSite]:
    """The call sites of a function's own body with their candidates, in order.

    Args:
        name: Of the function.
        function: The function.
        target: The machine.
        forms: Whether the passes to come know several forms of our kernels.
        errors: Whether to rule out forms whose rounding errors are too large.
        asks: Whether a library or an engine is asked at all.
        alone: Convolutions of single pixels that no other one is near; found if not given.
    """
    graph = Graph.of(function)
    backend = backend_of(target.kind)
    engines = [(e, e.missing()) for e in ENGINES.values() if asks(f"{ENGINE}{e.name}")]
    functions = [f for f in LIBRARY_FUNCTIONS.values() if f.pattern is not None]
    libraries = [(f, f.missing()) for f in functions if asks(f"{LIBRARY}{f.name}")]
    origins = origins_of(function)
    found: list[CallSite] = []
    if alone is None:
        alone = standing_alone(function, target) if forms else frozenset[Var]()
    for var, value in graph.values.items():
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            continue
        op = OPS.get(value.callee.name)
        if op is None or not op.pure:
            continue
        types = [_type_of(a) for a in value.args]
        site = OpSite(value, tuple(t for t in types if t is not None), var.type)
        glue = op.name in VIEWS
        no_kernel = why_no_kernel(value, var.type)
        known = forms_of(value, var, alone, target, errors) if forms and no_kernel is None else []
        candidates = _ours(site, known, HOST if no_kernel else TIR, target)
        if all(t is not None for t in types):
            candidates += [
                *(_library(f, why, site, graph, var, target) for f, why in libraries),
                *(_engine(e, why, site, target) for e, why in engines),
            ]
        kept = tuple(_preferred([c for c in candidates if c.row.why_not != ""], backend))
        was = origins.get(var.name, ())
        found.append(CallSite(f"{name}/{var.name}", var, value, site, glue, no_kernel, kept, was))
    return found


def _preferred(candidates: Sequence[Candidate], backend: Backend) -> list[Candidate]:
    """Those that the target takes in its order, then those that it does not."""
    ranked = [(backend.rank(c.implementation), c) for c in candidates]
    taken = sorted((r, i) for i, (r, _) in enumerate(ranked) if r is not None)
    why = f"the target {backend.name!r} does not take it"
    others = [
        Candidate(CandidateRow(c.implementation, why_not=why)) for r, c in ranked if r is None
    ]
    return [*(candidates[i] for _, i in taken), *others]


def _type_of(e: Expr) -> Type | None:
    if isinstance(e, Tuple):
        parts = [_type_of(f) for f in e.fields]
        known = [p for p in parts if p is not None]
        return TupleType(tuple(known)) if len(known) == len(parts) else None
    return atom_type(e)


def _ours(site: OpSite, forms: Sequence[Form], plain: str, target: Target) -> list[Candidate]:
    seconds = estimate(site, plain, target)
    return [
        Candidate(
            CandidateRow(f"{OURS}{f.algorithm}", seconds * f.share)
            if f.why_not is None
            else CandidateRow(f"{OURS}{f.algorithm}", why_not=f.why_not)
        )
        for f in forms
    ] or [Candidate(CandidateRow(plain, seconds))]


def _library(
    function: LibraryFunction,
    missing: str | None,
    site: OpSite,
    graph: Graph,
    var: Var,
    target: Target,
) -> Candidate:
    """A library function; an empty reason where its pattern is not there at all."""
    name = f"{LIBRARY}{function.name}"
    assert function.pattern is not None
    match = match_at(function.pattern, graph, var)
    if match is None:
        return Candidate(CandidateRow(name, why_not=""))
    if missing is not None:
        return Candidate(CandidateRow(name, why_not=missing))
    why = _kernel_refuses(function, match, var)
    if why is not None:
        return Candidate(CandidateRow(name, why_not=why))
    return Candidate(CandidateRow(name, estimate(site, name, target)), function, match)


def _kernel_refuses(function: LibraryFunction, match: Match, var: Var) -> str | None:
    inputs = [atom_type(match[i]) for i in function.inputs]
    outputs = tensor_fields(var.type)
    tensors = [t for t in inputs if isinstance(t, TensorType) and is_concrete(t)]
    if len(tensors) != len(inputs) or outputs is None or not all(map(is_concrete, outputs)):
        return "dtype or rank are not known"
    try:
        function.kernel(tensors, outputs, function.attrs(match))
    except UnityError as error:
        return error.message
    return None


def _engine(engine: Engine, missing: str | None, site: OpSite, target: Target) -> Candidate:
    name = f"{ENGINE}{engine.name}"
    if missing is not None:
        return Candidate(CandidateRow(name, why_not=missing))
    fields = [f for t in (*site.args, site.result) for f in _tensors(t)]
    if not all(map(is_concrete, fields)):
        return Candidate(CandidateRow(name, why_not="dtype or rank are not known"))
    why = engine.supports(site)
    if why is not None:
        return Candidate(CandidateRow(name, why_not=why))
    return Candidate(CandidateRow(name, estimate(site, name, target)))


def _tensors(t: Type) -> Sequence[TensorType]:
    return tensor_fields(t) or ()
