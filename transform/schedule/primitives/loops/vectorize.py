"""vectorize: iterations of a loop in the lanes of a vector."""

from __future__ import annotations

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Block, For, PrimFunc

from ....blocks.extents import number
from ....blocks.tree import Outcome, blocks_below, driven, illegal, loop_path, loops_of, scope_path
from ..reduction.decompose_reduction import decompose_reduction
from ..reduction.partial_results import factored, reduced_by, reduction_of
from .parallel import at_once


def vectorize(func: PrimFunc, var: PrimVar) -> Outcome:
    """The loop's iterations become lanes.

    A loop of a sum (a product, a minimum ...) becomes lanes of partial results, which start before
    the outermost loop of the reduction and are joined behind it: the block keeps its name for the
    join, what each lane adds up is a block ``..._lanes``. Floats are so added in another order.

    Args:
        func: The prim func.
        var: A serial loop of a constant extent that drives spatial axes only, or reduce axes only
            of one block.

    Raises:
        UnityError: The extent is no constant; iterations depend on one another, or may; the block
            reduces by no commutative operation.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 16], c: f32[Buffer, 16]) -> None:
    ...     for i in range(16):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(16, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> _, inner = sch.split(sch.get_loops("copy")[0], [None, 8])
    >>> sch.vectorize(inner)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 16], c: f32[Buffer, 16]) -> None:
        for i_0 in range(2):
            for i_1 in T.vectorized(8):
                with T.block("copy"):
                    vi = T.axis.spatial(16, i_0 * 8 + i_1)
                    c[vi] = a[vi]

    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 64], c: f32[Buffer, 4]) -> None:
    ...     for i, k in T.grid(4, 64):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> _, inner = sch.split(sch.get_loops("sum")[1], [None, 8])
    >>> sch.vectorize(inner)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 64], c: f32[Buffer, 4]) -> None:
        for i in range(4):
            c_lanes = T.alloc((4, 8), "float32", scope="local")
            for k_0 in range(8):
                for k_1 in T.vectorized(8):
                    with T.block("sum_lanes"):
                        vi, vk_1, vk_0 = T.axis.remap("SSR", i, k_1, k_0)
                        with T.init():
                            c_lanes[vi, vk_1] = 0.0
                        c_lanes[vi, vk_1] += a[vi, vk_0 * 8 + vk_1]
            with T.block("sum_init"):
                vi = T.axis.remap("S", i)
                c[vi] = 0.0
            for k_1 in T.vectorized(8):
                with T.block("sum"):
                    vi, vk_1 = T.axis.remap("SR", i, k_1)
                    c[vi] += c_lanes[vi, vk_1]
    """
    where = "vectorize, argument 1 'loop'"
    _, loop = loop_path(func, var)
    if number(loop.extent) is None:
        raise illegal(where, "its extent is no constant", "split it by the number of lanes first")
    if not _reduces(loop):
        return at_once(func, var, "vectorize", "vectorized")
    path, loop = reduced_by(where, func, var)
    block = path[-1]
    assert isinstance(block, Block)
    _, store = reduction_of(where, block)
    reducing = [x for x in loops_of(scope_path(path)) if "R" in driven(block, x.var)]
    if block.init is None and reducing == [loop] and loop.body is block:
        return at_once(func, var, "vectorize", "vectorized")
    rank = len(store.buffer.shape)
    done = factored(where, func, path, loop, rank, reducing[0], "lanes", "local")
    return _vectorized(done, block, var)


def _vectorized(done: Outcome, block: Block, var: PrimVar) -> Outcome:
    """The loops over lanes made such, of the partial results and of the block that joins them."""
    func = done.func
    if block.init is not None:
        func = decompose_reduction(func, block.name, done.loops[-1]).func
    for lanes in (var, done.loops[-1]):
        func = at_once(func, lanes, "vectorize", "vectorized").func
    return Outcome(func)


def _reduces(loop: For) -> bool:
    """Whether a loop drives reduce axes of a block, and nothing else."""
    found = [driven(b, loop.var) for b in blocks_below(loop)]
    return found == [{"R"}]
