"""Random kernels: any access pattern, reduction, dtype and epilogue that a schedule may meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from unity import te
from unity.ir.dims import Dim, as_dim, dim, evaluate, symbols_of
from unity.ir.prim_expr import Binary, BinaryOp, PrimExpr, PrimVar, imm
from unity.ir.stmt import For, PrimFunc, Stmt
from unity.ir.symbols.convert import to_dim
from unity.ir.visit import stmt_children

EXTENTS: tuple[Dim, ...] = (1, 2, 3, 5, 8, 17, 33, dim("n"), dim("m"))
SIZES = {"n": (1, 2, 7, 19), "m": (1, 4, 13)}
WORK = 40_000  # iterations at most of a kernel that is interpreted
Term = tuple[int, int]
"""An axis by number, and how far an index moves with it."""


def random_kernel(random: Random) -> PrimFunc:
    """A kernel of one stage, or of a reduction and what is done to its result."""
    dtype = random.choice(["float32", "float32", "float64", "int32", "int8"])
    spatial = [random.choice(EXTENTS) for _ in range(random.randrange(4))]
    reduced = [random.choice(EXTENTS) for _ in range(random.choice([0, 1, 1, 2]))]
    extents = [*spatial, *reduced]
    inputs: list[te.Tensor] = []
    maps: list[list[list[Term]]] = []
    for i in range(random.choice([1, 2, 2])):
        terms = _access(random, len(extents))
        maps.append(terms)
        shape = [_size(index, extents) for index in terms]
        inputs.append(te.placeholder(shape, dtype, f"x{i}"))
    axes = [te.reduce_axis(e, f"k{i}") for i, e in enumerate(reduced)]
    join: BinaryOp = random.choice(["mul", "add", "max", "sub"])

    def value(at: Sequence[PrimExpr]) -> PrimExpr:
        loads = [
            tensor[tuple(_index(index, at) for index in terms)]
            for tensor, terms in zip(inputs, maps, strict=True)
        ]
        result: PrimExpr = loads[0]
        for load in loads[1:]:
            result = Binary(join, result, load)
        if at and guarded:
            result = te.select(at[0] < 2, result, 1)
        return result

    guarded = random.randrange(4) == 0
    kind = random.choice(["sum", "max", "min"] + ["prod"] * (dtype == "float64"))
    init = random.choice([None, None, None, 3])

    def body(*at: PrimVar) -> PrimExpr | te.Reduce:
        if not axes:
            return value(at)
        whole = value([*at, *(a.var for a in axes)])
        return te.reduce(kind, (whole,), axes, None if init is None else (init,))

    y = te.compute(spatial, body, "y")
    outputs = [y]
    if random.randrange(2):
        bias = te.placeholder(spatial[-1:], dtype, "bias")
        inputs.append(bias)

        def finish(*at: PrimVar) -> PrimExpr:
            with_bias = y[at] + (bias[at[-1]] if at else bias[()])
            return with_bias if plain else te.max_(with_bias, 0)

        plain = random.randrange(2)
        outputs = [te.compute(spatial, finish, "z")]
        if random.randrange(4) == 0:
            outputs.append(y)
    return te.create_prim_func([*inputs, *outputs])


def random_sizes(func: PrimFunc, random: Random) -> dict[str, int]:
    """Sizes for a random kernel, of those at which it runs no more iterations than `WORK`."""
    drawn = [{n: random.choice(of) for n, of in SIZES.items()} for _ in range(4)]
    return next((s for s in drawn if iterations(func.body, s) <= WORK), {"n": 2, "m": 4})


def iterations(s: Stmt, sizes: Mapping[str, int]) -> int:
    """How often the innermost statements run."""
    below = sum(iterations(child, sizes) for child in stmt_children(s)) or 1
    if not isinstance(s, For):
        return below
    extent = to_dim(s.extent)
    assert extent is not None
    return below * evaluate(extent, {x: sizes[x.name] for x in symbols_of(extent)})


def _row_reduction(t: te.Tensor, rows: Dim, m: int, name: str) -> te.Tensor:
    k = te.reduce_axis(m, "k")
    return te.compute((rows, m), lambda i, j: te.max(t[i, k] - t[i, j], [k]), name)


def _window(t: te.Tensor, rows: Dim, m: int, name: str) -> te.Tensor:
    return te.compute((rows, m), lambda i, j: t[i, j] + t[i + 2, j], name)


def _flipped(t: te.Tensor, rows: Dim, m: int, name: str) -> te.Tensor:
    return te.compute((rows, m), lambda i, j: t[i, m - 1 - j] * 2.0, name)


def _padded(t: te.Tensor, rows: Dim, m: int, name: str) -> te.Tensor:
    def element(i: PrimVar, j: PrimVar) -> PrimExpr:
        return te.select(te.all_true(i >= 1, j < m - 1), t[i - 1, j + 1], 0.0)

    return te.compute((rows, m), element, name)


def _between(t: te.Tensor, rows: Dim, m: int, name: str) -> te.Tensor:
    def element(i: PrimVar, j: PrimVar) -> PrimExpr:
        return t[te.max_(i - 1, 0), j] + t[i, te.min_(j + 1, m - 1)]

    return te.compute((rows, m), element, name)


def _sum(t: te.Tensor, x: te.Tensor, rows: Dim, m: int, name: str) -> te.Tensor:
    return te.compute((rows, m), lambda i, j: t[i, j] + x[i, j], name)


def random_chain(random: Random) -> PrimFunc:
    """Stages that each read the one before: point by point, windows, rows, transposed."""
    sizes: tuple[Dim, ...] = (4, 9, dim("n"))
    n = random.choice(sizes)
    m = random.choice([3, 8])
    x = te.placeholder((n + 2, m), "float32", "x")
    y: te.Tensor = x
    rows: Dim = n + 2
    for k in range(random.randint(2, 4)):
        before = y
        name = f"s{k}"
        match random.randrange(7):
            case 6:
                y = _between(before, rows, m, name)
            case 5:
                y = _padded(before, rows, m, name)
            case 0 if rows is not n:
                y, rows = _window(before, n, m, name), n
            case 1:
                y = _row_reduction(before, rows, m, name)
            case 2:
                y = _flipped(before, rows, m, name)
            case _:
                y = _sum(before, x, rows, m, name)
    return te.create_prim_func([x, y])


def _access(random: Random, axes: int) -> list[list[Term]]:
    """The indices of one read: axes in some order, some left out, some added up or strided."""
    chosen = [a for a in range(axes) if random.randrange(4)]
    if random.randrange(3) == 0:
        random.shuffle(chosen)
    terms: list[list[Term]] = []
    for axis in chosen:
        step = random.choice([1, 1, 1, 1, 2])
        if terms and random.randrange(5) == 0:
            terms[-1].append((axis, step))
        else:
            terms.append([(axis, step)])
    return terms


def _index(terms: Sequence[Term], at: Sequence[PrimExpr]) -> PrimExpr:
    total: PrimExpr = imm(0)
    for axis, step in terms:
        total = Binary("add", total, Binary("mul", at[axis], imm(step)))
    return total


def _size(terms: Sequence[Term], extents: Sequence[Dim]) -> Dim:
    total: Dim = 1
    for axis, step in terms:
        total = total + (extents[axis] - 1) * step
    return as_dim(total)
