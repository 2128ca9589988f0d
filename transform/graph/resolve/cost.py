"""The static estimate: what a site takes by its arithmetic, its bytes, and tables of efficiency.

Rough on purpose: it orders candidates where nothing was measured. The tables are the backend's own:
`Backend.efficiency` holds the share of the machine's peak that an implementation reaches on a class
of ops.
"""

from __future__ import annotations

from math import prod
from typing import Literal, TypeAlias

from unity.ir.graph import Op
from unity.ir.representative import representative
from unity.ir.types import TensorType, TupleType, Type
from unity.machine.target import Target
from unity.op.table import OPS

from ...backend import backend_of
from .engine import OpSite

OpClass: TypeAlias = Literal["contraction", "convolution", "rows", "elementwise", "movement"]
CALL_SECONDS = {"tir": 3e-7, "library": 5e-7, "engine": 2e-5, "host": 2e-5}
"""What a call costs besides its work."""
_OTHER = 0.4


def estimate(site: OpSite, implementation: str, target: Target) -> float:
    """Seconds that a site may take by an implementation.

    Args:
        site: The call.
        implementation: ``tir``, ``host``, ``library:name.function``, ``engine:name``; an engine's
            call is not counted, since many sites share one.
        target: The machine.
    """
    kind = op_class(site)
    tables = backend_of(target.kind).efficiency
    table = tables.get(implementation) or tables.get(implementation.partition(".")[0]) or {}
    share = table.get(kind, _OTHER)
    machine = target.machine
    per_cycle = 2 * machine.fma_per_cycle * (target.vector_bits // 32)
    peak = machine.hertz * per_cycle * target.threads
    work = flops(site) / peak
    speed = machine.hertz * machine.memory_bytes_per_cycle
    moved = sum(bytes_of(t) for t in (*site.args, site.result)) / speed
    road = implementation.partition(":")[0]
    return max(work, moved) / share + (0.0 if road == "engine" else CALL_SECONDS[road])


def op_class(site: OpSite) -> OpClass:
    """What kind of work an op is."""
    assert isinstance(site.call.callee, Op)
    name = site.call.callee.name
    if name == "matmul":
        return "contraction"
    if name.startswith("nn.conv"):
        return "convolution"
    if OPS[name].pattern == "reduction":
        return "rows"
    return "elementwise" if OPS[name].pattern in ("elementwise", "broadcast") else "movement"


def flops(site: OpSite) -> float:
    """Operations of a contraction or a convolution; of anything else, one for each element."""
    out = _elements(site.result)
    kind = op_class(site)
    if kind == "contraction":
        first = _dims(site.args[0])
        return 2.0 * out * (first[-1] if first else 1)
    if kind == "convolution" and len(site.args) > 1:
        weight = _dims(site.args[1])
        return 2.0 * out * prod(weight[1:]) if weight else float(out)
    return float(out)


def _dims(t: Type) -> tuple[int, ...]:
    if not isinstance(t, TensorType) or not isinstance(t.shape, tuple):
        return ()
    return tuple(representative(d) for d in t.shape)


def _elements(t: Type) -> int:
    if isinstance(t, TupleType):
        return sum(map(_elements, t.fields))
    return prod(_dims(t))


def bytes_of(t: Type) -> int:
    """What a value takes, unknown sizes taken for representative ones."""
    if isinstance(t, TupleType):
        return sum(map(bytes_of, t.fields))
    width = t.dtype.bytes if isinstance(t, TensorType) and t.dtype is not None else 0
    return prod(_dims(t)) * width
