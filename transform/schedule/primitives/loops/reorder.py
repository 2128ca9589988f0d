"""reorder: loops of a nest change places."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import variables

from ....blocks.dependence import may_reorder
from ....blocks.motion import shifting_bounds
from ....blocks.tree import Outcome, around, illegal, loop_path, replaced


def reorder(func: PrimFunc, vars: Sequence[PrimVar]) -> Outcome:
    """The loops in the order given, in the places that they have between them now.

    Args:
        func: The prim func.
        vars: Loops of one nest without statements between them, outermost first.

    Raises:
        UnityError: They are no such nest, a bound depends on a loop that would go inside, or the
            blocks below need the order.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> i, k = sch.get_loops("sum")
    >>> sch.reorder(k, i)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        for k, i in T.grid(8, 4):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    c[vi] = 0.0
                c[vi] += a[vi, vk]
    """
    where = "reorder, argument 1 'loops'"
    if len(set(vars)) != len(vars) or not vars:
        raise illegal(where, "each loop must be given once")
    paths = [loop_path(func, var) for var in vars]
    path, last = max(paths, key=lambda p: len(p[0]))
    first = min((p for p, _ in paths), key=len)
    for _, loop in paths:
        if not any(s is loop for s in path):
            raise illegal(where, f"{loop.var.name!r} is not in one nest with {last.var.name!r}")
        if loop.kind == "thread":
            raise illegal(where, f"{loop.var.name!r} is bound to threads")
    nest = path[len(first) - 1 :]
    chain = [s for s in nest if isinstance(s, For)]
    if len(chain) != len(nest):
        raise illegal(where, "statements stand between the loops")
    wanted = [loop for _, loop in paths]
    given = iter(wanted)
    order = [next(given) if any(x is w for w in wanted) else x for x in chain]
    if all(a is b for a, b in zip(order, chain, strict=True)):
        return Outcome(func)
    seen = {loop.var for loop in chain}
    for loop in order:
        needs = (variables(loop.begin) | variables(loop.extent)) & seen
        if needs:
            name = next(iter(needs)).name
            raise illegal(where, f"the bounds of {loop.var.name!r} depend on {name!r}")
        seen.discard(loop.var)
    why = shifting_bounds(chain) or may_reorder(chain, order, first)
    if why is not None:
        raise illegal(where, why)
    return Outcome(replaced(func, [(chain[0], around(order, last.body))]))
