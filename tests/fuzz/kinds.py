"""The kinds of random programs that the command knows, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tests.generators.prim_func import prim_func
from unity.ir.module import IRModule
from unity.transform import Pipeline
from unity.transform.pipeline import GRAPH, KERNELS

from . import graphs, kernels, points
from .graphs import Graph
from .kind import Kind

SIZE = 8
"""Bindings of a random ``main``, about."""
_CHECKED = """# graph
from unity.interpreter import interpret
from unity.transform import Context
from unity.transform.instruments import NumericCheck, Verify
{imports}"""
_RUN_PASSES = """check = NumericCheck(interpret, {{"main": args}})
{passes}.run(module, Context(instruments=(Verify(), check)))
"""
_RUN_COMPILED = """compiled = unity.compile(module, cache=None)
for args in calls:
    expected = interpret(module, "main", args)
    got = compiled(*args)
    print(expected, got, sep="\\n")
    require_same(expected, plain(got))
"""


def graph_kind(passes: Pipeline, text: str, imports: str) -> Kind[Graph]:
    """Random graph functions through passes.

    Args:
        passes: Which.
        text: What a script calls them.
        imports: How it comes by them.
    """
    run = _RUN_PASSES.format(passes=text)
    return Kind(
        "graph",
        partial(graphs.drawn, size=SIZE),
        partial(graphs.check_passes, passes),
        graphs.smaller,
        graphs.script(_CHECKED.format(imports=imports), f"{run}check_printing(Graph(module, 0))\n"),
    )


def _printed(seed: int) -> Graph:
    """A module of graph functions and kernels, or a kernel alone."""
    if seed % 4:
        return graphs.drawn(seed, 12)
    return Graph(IRModule({"main": prim_func(Random(seed))}), seed)


_FROM_GRAPHS = "from tests.fuzz.graphs import Graph, check_printing, plain, require_same"
KINDS: dict[str, Callable[[], Kind[Any]]] = {
    "graph": lambda: graph_kind(
        GRAPH + KERNELS,
        "(GRAPH + KERNELS)",
        f"{_FROM_GRAPHS}\nfrom unity.transform.pipeline import GRAPH, KERNELS",
    ),
    "compiled": lambda: Kind(
        "compiled",
        partial(graphs.drawn, size=SIZE),
        partial(graphs.check_compiled, graphs.kernels_folder()),
        graphs.smaller,
        graphs.script(
            f"# compiled\nimport unity\nfrom unity.interpreter import interpret\n{_FROM_GRAPHS}",
            _RUN_COMPILED,
            graphs.both_calls,
        ),
    ),
    "script": lambda: Kind(
        "script",
        _printed,
        graphs.check_printing,
        graphs.smaller,
        graphs.script(f"# script\n{_FROM_GRAPHS}", "check_printing(Graph(module, 0))\n"),
    ),
    "schedule": lambda: Kind(
        "schedule",
        kernels.drawn_with_steps,
        kernels.check_steps,
        kernels.smaller,
        kernels.script("schedule", kernels.RUN_STEPS),
    ),
    "kernel": lambda: Kind(
        "kernel",
        kernels.drawn,
        kernels.check_machine_code,
        kernels.smaller,
        kernels.script("kernel", kernels.RUN_MACHINE_CODE),
    ),
    "samples": lambda: Kind(
        "samples", points.sample, points.check, points.smaller, points.script, limit=300.0
    ),
}
"""What makes each kind."""
