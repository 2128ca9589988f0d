"""The static estimate: what a site takes by its arithmetic, its bytes, and tables of efficiency.

Rough on purpose: it orders candidates where nothing was measured. The tables are the backend's own:
`Backend.efficiency` holds the share of the machine's peak that an implementation reaches on a class
of ops.
"""

from __future__ import annotations

from math import prod

from unity.ir.graph import Op
from unity.ir.symbols.representative import representative
from unity.ir.types import TensorType, TupleType, Type
from unity.machine.target import Target
from unity.op.registry import OpClass
from unity.op.table import OPS

from ...backend import backend_of
from .engine import OpSite

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
    op = OPS[site.call.callee.name]
    if op.op_class is not None:
        return op.op_class
    if op.pattern == "reduction":
        return "rows"
    return "elementwise" if op.pattern in ("elementwise", "broadcast") else "movement"


def flops(site: OpSite) -> float:
    """Operations of a call: two for each product that is added up, else one for each element."""
    assert isinstance(site.call.callee, Op)
    multiply_adds = OPS[site.call.callee.name].multiply_adds
    if multiply_adds is None:
        return float(_elements(site.result))
    return 2.0 * multiply_adds([_dims(t) for t in site.args], _dims(site.result))


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
