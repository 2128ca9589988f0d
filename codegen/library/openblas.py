"""OpenBLAS: matrix products. The one that numpy brings is used unless a newer is installed.

Each product is one kernel whose rows are shared out to our pool; OpenBLAS itself is kept to the
thread that calls it. Its functions take 64-bit sizes (ILP64).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, always_ge, equal, product
from unity.ir.dtype import FLOAT32, FLOAT64, Array, DType
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType
from unity.machine.machine import MACHINE
from unity.runtime.linking import libraries
from unity.transform.graph.resolve import LibraryFunction, register_library_function, sealed
from unity.transform.pattern import Match, any_, op

from .shared_library import SharedLibrary

_WORK = MACHINE.grain("library_multiply_adds")
_MOST_TASKS = 4
"""However many threads there are, which a library's kernel does not know."""


OPENBLAS = SharedLibrary(
    libraries.OPENBLAS.name,
    libraries.OPENBLAS.files,
    libraries.OPENBLAS.forms,
    libraries.OPENBLAS.threads,
    libraries.OPENBLAS.hint,
)

_PREFIX: dict[DType, str] = {FLOAT32: "s", FLOAT64: "d"}


def gemm_kernel(
    inputs: Sequence[TensorType], outputs: Sequence[TensorType], attrs: Attrs
) -> PrimFunc:
    """The kernel of a product ``(..., m, k) x (k, n)`` or ``(..., m, k) x (..., k, n)``.

    Args:
        inputs: The operands' types.
        outputs: The result's.
        attrs: ``transposed``: whether the second is given as ``(..., n, k)``.

    Raises:
        UnityError: The types are none that OpenBLAS computes.
    """
    a, b = inputs
    (c,) = outputs
    transposed = bool(attrs.get("transposed", False))
    dtypes = {t.dtype for t in (a, b, c)}
    if len(dtypes) != 1 or a.dtype not in _PREFIX:
        raise UnityError(f"takes float32 or float64, all alike, not {_listed(dtypes)}")
    x, y = _dims(a), _dims(b)
    if len(x) < 2 or len(y) < 2:
        raise UnityError(f"takes matrices, got ranks {len(x)} and {len(y)}")
    k, n = (y[-1], y[-2]) if transposed else (y[-2], y[-1])
    if not equal(x[-1], k):
        raise UnityError(f"the inner dims differ: {x[-1]} and {k}")
    if not always_ge(k, 1):
        raise UnityError(f"sums of no products are left to our kernels, and {k} may be 0")
    if len(y) == 2:
        return _flat_kernel(a.dtype, len(x), transposed, x, n)
    if len(x) != len(y) or not all(map(equal, x[:-2], y[:-2])):
        raise UnityError(f"the batches differ: {_listed(x[:-2])} and {_listed(y[:-2])}")
    return _batched_kernel(a.dtype, len(x), transposed)


def _flat_kernel(dtype: DType, rank: int, transposed: bool, x: Sequence[Dim], n: Dim) -> PrimFunc:
    """All leading axes of the first operand together are rows; some rows make a task."""
    lead = [f"d{i}" for i in range(rank - 1)]
    rows = " * ".join(lead)
    count, width = product(x[:-1]), f"f{dtype.bits}"
    vector = equal(count, 1)
    zeros = ", ".join("0" for _ in range(rank))
    b = "n, k" if transposed else "k, n"
    if vector:
        order = 111 if transposed else 112
        across, down = ("k", "n") if transposed else ("n", "k")
        body = f"""
        T.call_extern("openblas.cblas_{_PREFIX[dtype]}gemv", {_int(101)}, {_int(order)},
            {down}, {across}, {_one(dtype)}, T.address_of(b[0, 0]), {across},
            T.address_of(a[{zeros}]), 1, {_zero(dtype)}, T.address_of(c[{zeros}]), 1)"""
        del n
    else:
        body = f"""
        for task in T.parallel({_tasks(rows)}):
            T.call_extern("openblas.cblas_{_PREFIX[dtype]}gemm", {_int(101)}, {_int(111)},
                {_int(112 if transposed else 111)},
                T.min(({rows} + {_tasks(rows)} - 1) // {_tasks(rows)},
                    T.max({rows} - task * (({rows} + {_tasks(rows)} - 1) // {_tasks(rows)}), 0)),
                n, k, {_one(dtype)}, T.address_of({_row("a", rank, rows, "k")}), k,
                T.address_of(b[0, 0]), {"k" if transposed else "T.max(1, n)"}, {_zero(dtype)},
                T.address_of({_row("c", rank, rows, "n")}), T.max(1, n))"""
    return _kernel(
        (*lead, "k", "n"),
        f"a: {width}[Buffer, {', '.join(lead)}, k], b: {width}[Buffer, {b}], "
        f"c: {width}[Buffer, {', '.join(lead)}, n]",
        body,
    )


def _tasks(rows: str) -> str:
    """How many tasks: as the work wants, each of some rows."""
    return f"T.max(1, T.min({_MOST_TASKS}, T.min({rows} // 16, {rows} * n * k // {_WORK})))"


def _row(buffer: str, rank: int, rows: str, width: str) -> str:
    """Where a task's rows begin: an index along the last axis reaches all that follows."""
    first = f"task * (({rows} + {_tasks(rows)} - 1) // {_tasks(rows)}) * {width}"
    return f"{buffer}[{', '.join('0' for _ in range(rank - 1))}, {first}]"


def _batched_kernel(dtype: DType, rank: int, transposed: bool) -> PrimFunc:
    """One product for each index of the leading axes, in parallel."""
    lead = [f"d{i}" for i in range(rank - 2)]
    at = ", ".join(f"i{i}" for i in range(rank - 2))
    width = f"f{dtype.bits}"
    loops = "".join(
        "    " * (i + 2) + f"for i{i} in {'T.parallel' if i == 0 else 'range'}(d{i}):\n"
        for i in range(rank - 2)
    )
    pad = "    " * rank
    b = "n, k" if transposed else "k, n"
    body = f"""
{loops}{pad}T.call_extern("openblas.cblas_{_PREFIX[dtype]}gemm", {_int(101)}, {_int(111)},
{pad}    {_int(112 if transposed else 111)}, m, n, k, {_one(dtype)}, T.address_of(a[{at}, 0, 0]),
{pad}    k, T.address_of(b[{at}, 0, 0]), {"k" if transposed else "T.max(1, n)"}, {_zero(dtype)},
{pad}    T.address_of(c[{at}, 0, 0]), T.max(1, n))"""
    return _kernel(
        (*lead, "m", "k", "n"),
        f"a: {width}[Buffer, {', '.join(lead)}, m, k], "
        f"b: {width}[Buffer, {', '.join(lead)}, {b}], c: {width}[Buffer, {', '.join(lead)}, m, n]",
        body,
    )


@lru_cache(maxsize=64)  # there are few, and every product of a model asks for one
def _kernel(symbols: tuple[str, ...], params: str, body: str) -> PrimFunc:
    """A kernel around calls of OpenBLAS, during which it runs on the calling thread alone."""
    declared = "\n".join(f'{s} = dim("{s}")' for s in symbols)
    text = f"""
{declared}

@script.prim_func
def gemm({params}) -> None:
        T.call_extern("openblas.serial_begin"){body}
        T.call_extern("openblas.serial_end")
"""
    from unity.script import parse  # long to import, and seldom needed

    return sealed(parse(text).prim_funcs()["gemm"])


def _int(value: int) -> str:
    return f'T.imm("int32", {value})'


def _one(dtype: DType) -> str:
    return f'T.imm("{dtype}", 1.0)'


def _zero(dtype: DType) -> str:
    return f'T.imm("{dtype}", 0.0)'


def _dims(t: TensorType) -> tuple[Dim, ...]:
    assert isinstance(t.shape, tuple)
    return t.shape


def _listed(items: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, items)))


def _product(a: Array, b: Array, *, transposed: bool = False) -> Array:
    return np.asarray(np.matmul(a, np.swapaxes(b, -1, -2) if transposed else b))


def _attrs(match: Match) -> Attrs:
    return Attrs(transposed=match.get("transposed") is not None)


def _swaps_last(axes: object) -> bool:
    """Whether a permutation swaps the last two axes and nothing else."""
    if not isinstance(axes, tuple) or len(axes) < 2:
        return False
    rank = len(axes)
    return axes == (*range(rank - 2), rank - 1, rank - 2)


_B = any_("b")
_TRANSPOSED = op("permute_dims", _B, attrs={"axes": _swaps_last}, name="transposed")

GEMM = LibraryFunction(
    "openblas.gemm",
    gemm_kernel,
    _product,
    pattern=op("matmul", any_("a"), _TRANSPOSED | _B),
    inputs=("a", "b"),
    attrs=_attrs,
    missing=OPENBLAS.missing,
    doc="Matrix products of float32 and float64: plain, of a transposed operand, batched.",
)


def register() -> None:
    """Let kernels call OpenBLAS."""
    OPENBLAS.register()
    register_library_function(GEMM)
