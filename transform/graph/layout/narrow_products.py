"""Quantized weights that products read as they are: which ones, by what the machine takes.

A product of few rows waits for its weights; integers of 8 bits are a quarter of the bytes, and are
widened in registers. A product of many rows does so again for each tile of rows, and is better off
with weights that were dequantized once.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, INT8
from unity.ir.graph import Call, Constant, Function, Op, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.symbols.representative import representative
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings
from unity.machine.target import Target
from unity.op.elementwise.quantize import block_of
from unity.op.registry import int_attr

from ..uses import count_uses
from .narrow_weights import bits_of, is_narrow
from .pack_weights import panel_width, worth_packing


def narrow_products(f: Function, target: Target) -> frozenset[Var]:
    """The results of calls of `dequantize` that only products read, which had better not be folded.

    Views with axes exchanged count as the products that read them.
    """
    calls = {
        b.var: b.value
        for b in walk_bindings(f)
        if isinstance(b, VarBinding) and isinstance(b.value, Call)
    }
    readers: defaultdict[Var, list[Var]] = defaultdict(list)
    for var, call in calls.items():
        for a in call.args:
            if isinstance(a, Var):
                readers[a].append(var)
    uses = count_uses(f.body)

    def pays(var: Var, each: float, turned: bool) -> bool:
        alone = readers[var] and uses[var] == len(readers[var])
        return bool(alone) and all(reads(calls[r], r, var, each, turned) for r in readers[var])

    def reads(call: Call, result: Var, var: Var, each: float, turned: bool) -> bool:
        match call:
            case Call(Op("permute_dims")) if not turned:
                return pays(result, each, turned=True)
            case Call(Op("matmul"), (Var() as x, weight)) if weight is var and x is not var:
                if call.attrs["out_dtype"] not in (None, FLOAT32):
                    return False
            case _:
                return False
        kind, matrix = atom_type(x), atom_type(weight)
        match kind, matrix:
            case TensorType(tuple(dims), of), TensorType((int(k), int(n)), _) if of == FLOAT32:
                return narrow_pays(prod_of(dims[:-1]), k, n, target, each)
            case _:
                return False

    found: set[Var] = set()
    for var, call in calls.items():
        if call.callee != Op("dequantize"):
            continue
        bits = bits_of(call)
        if bits is None and not is_narrow(call):
            continue
        axis = int_attr(call.attrs, "axis") % 2
        plain = all(isinstance(r, Var) and calls[r].callee == Op("matmul") for r in readers[var])
        scale = call.args[1]
        assert isinstance(scale, Constant)
        rows, each = 0 if plain else 1, float(INT8.bytes)
        columns = scale.data.ndim == 0 or axis == 1 - rows
        if bits is not None:
            columns, each = axis == rows, bits / 8 + 2 * FLOAT32.bytes / block_of(call.attrs)
        turned = all(calls[r].callee == Op("permute_dims") for r in readers[var])
        if columns and (plain or turned) and pays(var, each, turned=False):
            found.add(var)
    return frozenset(found)


def prod_of(dims: tuple[Dim, ...]) -> Dim:
    """A product of dims."""
    found: Dim = 1
    for d in dims:
        found = found * d
    return found


def narrow_pays(rows: Dim, k: int, n: int, target: Target, each: float = float(INT8.bytes)) -> bool:
    """Whether a product is faster by weights of 8 bits or fewer, so many bytes with their scales.

    Where the number of rows is unknown, one row and the usual number count alike.

    >>> from unity.ir.dims import dim
    >>> from unity.machine.target import Target
    >>> target = Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2", "fma"), 256)
    >>> [narrow_pays(m, 768, 3072, target) for m in (1, 4, 128, dim("m"))]
    [True, True, False, True]
    """
    lanes = target.vector_bits // FLOAT32.bits
    if lanes < 2 or not worth_packing(k, n, lanes):
        return False
    sizes = (rows,) if isinstance(rows, int) else (1, representative(rows))
    wide, narrow = (
        prod(_cycles(max(1, m), k, n, size, target) for m in sizes)
        for size in (float(FLOAT32.bytes), each)
    )
    return narrow < wide


def _cycles(rows: int, k: int, n: int, each: float, target: Target) -> float:
    """What a product takes whose weights have so many bytes each."""
    machine, lanes = target.machine, target.vector_bits // FLOAT32.bits
    vectors = panel_width(n, lanes, target) // lanes
    most = max(1, (target.vector_registers - 1 - vectors) // vectors)
    tiles, tile = -(-rows // most), min(rows, most)
    widened = 0 if each == FLOAT32.bytes else vectors
    step = machine.step_cycles(tile * vectors + widened, tile + vectors + widened, chain=0)
    computed = tiles * k * -(-n // (lanes * vectors)) * step
    size = k * n * each
    speed = (
        machine.l2_bytes_per_cycle if size <= target.l2_bytes else machine.memory_bytes_per_cycle
    )
    return max(computed, size / speed)
