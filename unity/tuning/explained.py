"""What an explanation says of kernels that were tuned."""

from __future__ import annotations

import json
from dataclasses import replace

from unity.ir.module import IRModule
from unity.runtime.explanation import CandidateRow, Explanation, SiteRow
from unity.runtime.records import decode
from unity.transform.graph.origins import LAID_OUT
from unity.transform.graph.resolve.call_site import OURS, TIR
from unity.transform.pattern import Graph
from unity.transform.rules.by_record import TunedKernel, TunedKernels

TIR_TUNED = f"{TIR}:tuned"
"""How the choice of a site is called whose kernel was laid out by a record."""


def with_forms(found: Explanation, report: str) -> Explanation:
    """An explanation with the forms that records said.

    Args:
        found: What call sites were resolved to.
        report: What `FormByRecord` reported.
    """
    told: dict[str, tuple[str, str]] = json.loads(report)
    sites = tuple(
        replace(r, reason=f"{r.reason}; its form by record: {told[r.site][1]}")
        if r.site in told and r.choice == f"{OURS}{told[r.site][0]}"
        else r
        for r in found.sites
    )
    return replace(found, sites=sites)


def with_tuned(found: Explanation, report: str, module: IRModule) -> Explanation:
    """An explanation with what records laid out.

    Sites of such a kernel, also those that were fused into it, are ``tir:tuned``, with the time
    that was measured of the whole kernel.

    Args:
        found: What call sites were resolved to.
        report: What `ScheduleByRecord` reported.
        module: The program before passes.
    """
    told = decode(TunedKernels, report)
    calls = {call.removesuffix(LAID_OUT): k for k in told.kernels for call in k.calls}
    every = {*calls, *(call.removesuffix(LAID_OUT) for call in told.others)}
    of: dict[str, TunedKernel] = {}
    for name, function in module.graph_functions().items():
        names = {c.partition("/")[2] for c in every if c.startswith(f"{name}/")}
        graph = Graph.of(function, everywhere=True)
        for var in graph.values:
            last = graph.computed_with(var, names)
            if f"{name}/{last}" in calls:
                of[f"{name}/{var.name}"] = calls[f"{name}/{last}"]
    sites = tuple(_tuned(r, of[r.site]) if r.site in of else r for r in found.sites)
    notes = tuple(f"the kernel {k.name} is tuned: {k.about}" for k in told.kernels)
    return replace(found, sites=sites, notes=(*found.notes, *notes))


def _tuned(row: SiteRow, kernel: TunedKernel) -> SiteRow:
    """A site with the choice that a record made, if it is ours."""
    if row.choice.partition(":")[0] != TIR:
        return row
    candidate = CandidateRow(TIR_TUNED, kernel.seconds, measured=True)
    return replace(
        row,
        choice=TIR_TUNED,
        reason=f"{row.reason}; {kernel.name} by record: {kernel.about}",
        candidates=(candidate, *row.candidates),
    )
