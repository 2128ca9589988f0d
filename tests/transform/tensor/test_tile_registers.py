"""Tile registers: no more at once than there are, whatever a task goes through."""

from __future__ import annotations

import numpy as np

from unity.interpreter import run_prim_func
from unity.ir.marks import TILES
from unity.ir.stmt import Allocate, PrimFunc, Stmt
from unity.ir.visit import walk_stmt
from unity.machine.dot_units import TILE_REGISTERS
from unity.script import parse
from unity.transform import Context
from unity.transform.tensor import TileRegisters

USES = [(4, 16), (3, 13), (2, 16), (3, 11), (5, 9)]
"""How many tiles of how many rows, one use after another: 15 of four heights."""


def _use(number: int, height: int, start: int) -> str:
    """Statements that fill some tiles and copy them, from a row on."""
    name, size = f"t{start}", height * 16
    lines = [f"{name} = T.alloc(({number * size},), 'float32', scope='amx.tile')"]
    for mark, text in (
        ("tile_load", "{name}[{at} + m * 16 + n] = x[i * 8192 + {row} * 16 + m * 16 + n]"),
        ("tile_store", "y[i * 8192 + {row} * 16 + m * 16 + n] = {name}[{at} + m * 16 + n]"),
    ):
        for k in range(number):
            lines.append(f"for m in T.serial({height}, attrs={{'instruction': '{mark}'}}):")
            lines.append("    for n in range(16):")
            line = text.format(name=name, at=k * size, row=start + k * height)
            lines.append(f"        {line}")
    block = [f"    for _{start} in range(1):", *(f"        {line}" for line in lines)]
    return "\n".join(f"    {line}" for line in block)


def _program() -> tuple[PrimFunc, int]:
    """All uses in a loop, and how many rows they copy."""
    start, uses = 0, list[str]()
    for number, height in USES:
        uses.append(_use(number, height, start))
        start += number * height
    func = parse(f"""
@script.prim_func
def main(x: f32[Buffer, 16384], y: f32[Buffer, 16384]) -> None:
    for i in range(2):
{chr(10).join(uses)}
""")
    return TileRegisters()(func, Context()).prim_funcs()["main"], start


def _most_at_once(s: Stmt) -> int:
    """Registers that are taken one within another, at most."""

    def taken(x: Stmt) -> int:
        return isinstance(x, Allocate) and x.buffer.scope == TILES

    inner = [sum(map(taken, walk_stmt(x))) for x in walk_stmt(s) if taken(x)]
    return max(inner, default=0)


def test_runs_of_statements_take_what_there_is() -> None:
    func, rows = _program()
    assert 4 <= _most_at_once(func.body) <= TILE_REGISTERS
    x = np.random.default_rng(0).standard_normal(16384).astype(np.float32)
    y = np.zeros_like(x)
    run_prim_func(func, [x, y], {})
    want = np.zeros((2, 512 * 16), np.float32)
    want[:, : rows * 16] = x.reshape(2, -1)[:, : rows * 16]
    np.testing.assert_array_equal(y, want.reshape(-1))
