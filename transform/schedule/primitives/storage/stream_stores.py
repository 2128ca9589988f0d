"""stream_stores: what a kernel stores to a parameter goes past the caches."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.marks import NONTEMPORAL
from unity.ir.stmt import PrimFunc, Store
from unity.ir.visit import stmt_loads, walk_stmt

from ....blocks.dataflow import addressed_in
from ....blocks.tree import Outcome, illegal

_WHERE = "stream_stores, argument 1 'parameter'"


def stream_stores(func: PrimFunc, parameter: int | str) -> Outcome:
    """Whole registers stored to a parameter go to memory at once, and drive nothing out of caches.

    A store to a line that is in no cache reads the line first; one past the caches does not. That
    pays where a kernel writes more than the caches hold, else whoever reads the result next waits.
    It is the same for all of a kernel's stores to the buffer, whatever steps follow.

    Args:
        func: The prim func.
        parameter: A buffer: its name, or its place among the buffers that are parameters.

    Raises:
        UnityError: There is no such buffer; the kernel stores nothing there; it reads it as well,
            or gives its address to a foreign function.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     for i in range(8):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.stream_stores("c")
    >>> print(sch.func, end="")
    @script.prim_func(attrs={"nontemporal": (1,)})
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        for i in range(8):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = a[vi]
    """
    at = _position(func, parameter)
    buffer = func.buffers[at]
    if not any(isinstance(s, Store) and s.buffer is buffer for s in walk_stmt(func.body)):
        raise illegal(_WHERE, f"the kernel stores nothing to {buffer.name!r}")
    if any(x.buffer is buffer for s in walk_stmt(func.body) for x in stmt_loads(s)):
        raise illegal(_WHERE, f"the kernel reads {buffer.name!r} as well")
    if buffer in addressed_in(func.body):
        raise illegal(_WHERE, f"a foreign function gets the address of {buffer.name!r}")
    before = func.attrs.get(NONTEMPORAL, ())
    assert isinstance(before, tuple)
    every = tuple(sorted({at, *(p for p in before if isinstance(p, int))}))
    return Outcome(replace(func, attrs=func.attrs.with_(**{NONTEMPORAL: every})))


def _position(func: PrimFunc, parameter: int | str) -> int:
    names = [b.name for b in func.buffers]
    if isinstance(parameter, int):
        if not 0 <= parameter < len(names):
            raise illegal(_WHERE, f"the kernel has {len(names)} buffers, got {parameter}")
        return parameter
    if parameter not in names:
        has = f"the buffers are: {', '.join(names) or 'none'}"
        raise illegal(_WHERE, f"there is no buffer {parameter!r}", has)
    return names.index(parameter)
