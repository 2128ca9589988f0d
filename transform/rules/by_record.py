"""ScheduleByRecord: kernels that were tuned are laid out as their records say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from logging import getLogger
from math import isqrt

from unity.errors import UnityError
from unity.ir.graph import CallTir, FunctionRef, VarBinding
from unity.ir.module import IRModule
from unity.ir.prim_expr import Compare, PrimExpr, SizeVar, imm
from unity.ir.signature import size_params
from unity.ir.stmt import IfThen, PrimFunc, Stmt
from unity.ir.visiting.visit_graph import walk_bindings
from unity.machine.target import Target

from ..blocks.tree import distinct
from ..passes import Context, Pass
from ..scheduled import as_scheduled, awaits_layout
from ..seen import report_seen
from .canonical import canonical, identity

log = getLogger("unity")
TUNED = "tuned"
"""The attribute of a kernel that a record laid out; its value says which."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a record lays a kernel out.

    Attributes:
        kernel: What `identity` calls it.
        trace: The steps, as `Trace.to_json` writes them.
        decisions: For a program of default rules what they decide, and which are not asked, as JSON
            (``{"decisions": {block: {name: value}}, "without": {block: [rule]}}``); taken where the
            steps don't apply any more. None for other programs.
        sizes: What unknown sizes were when it was measured.
        about: What the record is called in explanations.
        seconds: What the kernel took when it was measured.
    """

    kernel: str
    trace: str
    decisions: str | None = None
    sizes: tuple[tuple[str, int], ...] = ()
    about: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """What an explanation is told of a kernel that records laid out.

    Attributes:
        name: The kernel's.
        about: What the records are called.
        calls: The variables that its calls are bound to, as ``function/variable``.
        seconds: What it took when it was measured, if it has one version.
    """

    name: str
    about: str
    calls: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TunedKernels:
    """The report of `ScheduleByRecord`.

    Attributes:
        kernels: Those that records laid out.
        others: The variables that calls of other kernels are bound to, as ``function/variable``.
    """

    kernels: tuple[TunedKernel, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScheduleByRecord(Pass):
    """Lays out each kernel that was tuned as its record says; the others are left as they are.

    Stands before `ScheduleDefault`. A record whose steps are refused is told of by the logger
    ``unity`` and done without. Of records for several sizes each gets a version of the kernel, and
    the sizes decide at run time which of them runs: the one whose size is nearest, by ratio. What
    was laid out is reported to the context as `TUNED`.

    It looks at each kernel by itself, and does not say so (`Pass.sees`): compiled kernels are kept
    by what they are behind it, so another record invalidates none of those it does not change.

    >>> from unity.script import parse, print_module
    >>> from unity.transform.rules.canonical import canonical, identity
    >>> from unity.transform.schedule import Schedule
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
    ...     for i in range(64):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(64, i)
    ...             c[vi] = a[vi] * 2.0
    ... ''')
    >>> func = before.prim_funcs()["main"]
    >>> sch = Schedule(canonical(func))
    >>> outer, inner = sch.split(sch.get_loops("b0")[0], [None, 8])
    >>> sch.vectorize(inner)
    >>> record = Replay(identity(func), sch.trace.to_json(), about="by hand")
    >>> print(print_module(ScheduleByRecord((record,))(before, Context())), end="")
    @script.prim_func(attrs={"scheduled": True, "tuned": "by hand"})
    def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
        for i_0 in range(8):
            for i_1 in T.vectorized(8):
                with T.block("b0"):
                    vi = T.axis.spatial(64, i_0 * 8 + i_1)
                    c[vi] = a[vi] * 2.0

    Attributes:
        records: By kernel and sizes, at most one for each.
        watched: Kernels that are reported to the context as `SEEN` where the program has them.
    """

    records: tuple[Replay, ...] = ()
    watched: tuple[str, ...] = field(default=(), repr=False)

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        if not self.records and not self.watched:
            return module
        of: dict[str, list[Replay]] = {}
        for record in self.records:
            of.setdefault(record.kernel, []).append(record)
        done: dict[str, PrimFunc] = {}
        names = {n: identity(f) for n, f in module.prim_funcs().items() if awaits_layout(f)}
        report_seen(ctx, self.watched, names.values())
        for name, func in module.prim_funcs().items():
            records = of.get(names[name]) if name in names else None
            made = None if records is None else by_records(name, func, records, ctx.target)
            if made is not None:
                done[name] = made
        if not done:
            return module
        calls = _calls(module)
        told: list[TunedKernel] = []
        for name, func in done.items():
            taken = of[names[name]]
            seconds = taken[0].seconds if len(taken) == 1 else None
            about = str(func.attrs[TUNED])
            told.append(TunedKernel(name, about, tuple(calls.get(name, ())), seconds))
        others = [c for name, made in calls.items() if name not in done for c in made]
        ctx.reports[TUNED] = json.dumps(asdict(TunedKernels(tuple(told), tuple(others))))
        return module.with_(done)


def _calls(module: IRModule) -> dict[str, list[str]]:
    """For each kernel the variables that its calls are bound to."""
    found: dict[str, list[str]] = {}
    for function, graph in module.graph_functions().items():
        for binding in walk_bindings(graph):
            match binding:
                case VarBinding(var, CallTir(FunctionRef(name))):
                    found.setdefault(name, []).append(f"{function}/{var.name}")
                case _:
                    pass
    return found


def by_records(
    name: str, func: PrimFunc, records: Sequence[Replay], target: Target
) -> PrimFunc | None:
    """A kernel as its records say; None where none of them applies any more."""
    base, versions = canonical(func), list[tuple[Replay, PrimFunc]]()
    for record in records:
        try:
            versions.append((record, replayed(base, record, target)))
        except UnityError as error:
            log.warning(
                "the record %r of the kernel %s does not apply any more, and is done without: %s",
                record.about or record.kernel, name, error.message,
            )  # fmt: skip
    if not versions:
        return None
    body = _by_sizes(versions, _size_that_differs(versions), base)
    about = "; ".join(dict.fromkeys(r.about for r, _ in versions))
    attrs = func.attrs.with_(**{TUNED: about})
    return distinct(as_scheduled(replace(versions[0][1], body=body, attrs=attrs)))


def replayed(base: PrimFunc, record: Replay, target: Target) -> PrimFunc:
    """A canonical kernel with a record's steps; by its rules' decisions where they are refused.

    Raises:
        UnityError: Neither applies.
    """
    from ..schedule.schedule import Schedule  # long to import, and not needed without records
    from ..schedule.trace import Trace

    try:
        return Schedule(base, target).replay(Trace.from_json(record.trace)).func
    except UnityError:
        if record.decisions is None:
            raise
        from .default import default_schedule

        said = json.loads(record.decisions)
        return default_schedule(base, target, said["decisions"], said["without"]).func


def _size_that_differs(versions: Sequence[tuple[Replay, PrimFunc]]) -> str | None:
    """The size that tells records apart: that whose values lie farthest apart by ratio."""
    sizes = [dict(record.sizes) for record, _ in versions]
    spread: Mapping[str, float] = {
        name: max(s.get(name, 1) for s in sizes) / max(1, min(s.get(name, 1) for s in sizes))
        for name in sizes[0]
    }
    widest = max(spread, key=lambda n: spread[n], default=None)
    return widest if widest is not None and spread[widest] > 1 else None


def _by_sizes(
    versions: Sequence[tuple[Replay, PrimFunc]], name: str | None, base: PrimFunc
) -> Stmt:
    """The versions' bodies, from the smallest size on, each up to where the next is nearer."""
    size = next((v for v in size_params(base) if v.name == name), None)
    if size is None or name is None:
        return versions[0][1].body
    by_size = {dict(record.sizes)[name]: func.body for record, func in versions}
    *smaller, last = sorted(by_size)
    body = by_size[last]
    for value, above in zip(reversed(smaller), reversed([*smaller[1:], last]), strict=True):
        body = IfThen(_at_most(size, isqrt(value * above)), by_size[value], body)
    return body


def _at_most(size: SizeVar, limit: int) -> PrimExpr:
    return Compare("le", size, imm(limit))
