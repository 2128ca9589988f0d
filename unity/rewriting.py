"""Rewrite rules of users, checked when they are made: both sides interpreted on random inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from unity.arguments import public
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dims import Dim, Symbol, dim, evaluate, symbols_of
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, RTOL, UINT8, Array, DType
from unity.ir.graph import BindingBlock, Body, Function, Tuple, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType, TupleType
from unity.ir.visiting.visit_graph import walk_bindings
from unity.script import ScriptFunction
from unity.transform.graph.rewrite.rewrite_rule import RewriteRule, instantiate
from unity.transform.instruments.numeric import difference
from unity.transform.pattern.bind import same_type

ENOUGH, LEAST = 40, 5
"""Trials that fit: how many are made, and how many there must be."""
MAGNITUDES = (60.0, 1e3, 1e20, 1e-20)
"""Numbers far from one that both sides are tried with, besides ordinary ones."""
RANGES = {
    "float16": (2.0**-14, 65504.0),
    "bfloat16": (2.0**-126, 3.3e38),
    "float32": (2.0**-126, 3.4e38),
    "float64": (2.0**-1022, 1.7e308),
}
"""The smallest normal number of a dtype, and about the largest one."""
DTYPES = (FLOAT32, FLOAT32, FLOAT64, INT64, INT32, INT8, UINT8, BOOL)
"""What parameters without a dtype are tried with, all of them alike."""


@partial(public, hints={"a ScriptFunction": "write both with @script.function"})
def rewrite_rule(
    before: ScriptFunction[..., object],
    after: ScriptFunction[..., object],
    *,
    name: str | None = None,
    check: bool = True,
    tries: int = 500,
    seed: int = 0,
) -> RewriteRule:
    """A rule for `unity.transform.graph.Rewrite`: where `before` is computed, compute `after`.

    Both are functions of operators with equal parameters. These stand for any values of their
    types: ``f32[Tensor, n, 4]`` for matrices of four columns, ``f32[Tensor, ...]`` for any shape,
    ``R.any_dtype[Tensor, ...]`` for any dtype as well. Constants of one element and attributes must
    be as written; a Python value from around the function makes a rule for each: see tutorial 7.

    The inputs are ordinary numbers, and large and tiny ones (`MAGNITUDES`). Of the latter it does
    not count against a rule if `before` itself overflows or gets subnormal numbers on the way.

    Args:
        before: What is looked for.
        after: What takes its place.
        name: What messages call it; the name of `before` if not given.
        check: Whether both are interpreted on random inputs of shapes and dtypes that fit.
        tries: How many random inputs may be made to find enough that fit.
        seed: Of these inputs.

    Raises:
        UnityError: The functions can't make a rule, or a check found inputs on which they differ.
    """
    rule = RewriteRule(before.name if name is None else name, before.func, after.func)
    if check:
        _check(rule, tries, np.random.default_rng(seed))
    return rule


def _check(rule: RewriteRule, tries: int, rng: np.random.Generator) -> None:
    """Refuse a rule whose sides differ.

    Raises:
        UnityError: With the shapes of a counterexample and the largest difference.
    """
    fitting = 0
    reason = ""
    far = rng.spawn(1)[0]
    for types in _samples(rule, tries, rng):
        inputs = [_values(t, rng) for t in types]
        try:
            first, second = _typed(rule.before, types), _typed(rule.after, types)
            expected = _run(first, inputs)
        except UnityError as error:
            reason = error.message
            continue
        if not same_type(second.result, first.result):  # where it is not applied
            reason = f"what takes its place is {second.result}, not {first.result}"
            continue
        wrong = _compare(expected, second, inputs) or _compare_far(first, second, types, far)
        if wrong is not None:
            shown = ", ".join(f"{p.name}: {p.type}" for p in first.params)
            raise UnityError(
                f"the rule {rule.name!r} changes what is computed, for {shown}: {wrong}",
                rule.after.span,
                "narrow the types of its parameters; check=False takes it as it is",
            )
        fitting += 1
        if fitting >= ENOUGH:
            return
    if fitting < LEAST:
        raise UnityError(
            f"the rule {rule.name!r} can't be checked: {fitting} of {tries} random inputs fit",
            rule.before.span,
            f"give its parameters shapes and dtypes; the last did not fit because {reason}",
        )


def _compare(expected: object, after: Function, inputs: Sequence[Array]) -> str | None:
    """How what takes the place differs on given inputs, an error included; None if it does not."""
    try:
        return _difference(expected, _run(after, inputs), after.result)
    except UnityError as error:
        return error.message


def _compare_far(
    before: Function, after: Function, types: Sequence[TensorType], rng: np.random.Generator
) -> str | None:
    """How both differ on large and tiny numbers where `before` stays within its dtypes."""
    magnitude = float(rng.choice(MAGNITUDES))
    inputs = [_far_values(t, magnitude, rng) for t in types]
    try:
        expected = _run(before, inputs)
    except UnityError:  # a number is too large for an index, say
        return None
    wrong = _compare(expected, after, inputs)
    if wrong is None or _leaves_its_range(before, inputs):
        return None
    return f"with numbers about {magnitude:g}, {wrong}"


def _leaves_its_range(function: Function, inputs: Sequence[Array]) -> bool:
    """Whether something that a function computes on the way is not finite, or subnormal."""
    made = tuple(b.var for b in walk_bindings(function))
    every = Var("every", TupleType(tuple(v.type for v in made)))
    last = BindingBlock((VarBinding(every, Tuple(made)),))
    body = Body((*function.body.blocks, last), every)
    every_value = Function(function.params, body, every.type)
    return any(map(_is_out_of_range, _arrays(_run(every_value, inputs))))


def _arrays(value: object) -> Iterator[Array]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, np.ndarray | np.generic):
        yield np.asarray(value)


def _is_out_of_range(array: Array) -> bool:
    if array.dtype.name not in RANGES:
        return False
    wide = np.abs(array.astype(np.float64))
    least, _ = RANGES[array.dtype.name]
    return not bool(np.all(np.isfinite(wide) & ((wide == 0.0) | (wide >= least))))


def _run(function: Function, inputs: Sequence[Array]) -> object:
    with np.errstate(all="ignore"):
        return interpret(IRModule({"main": function}), "main", inputs)


def _difference(expected: object, got: object, of: object) -> str | None:
    """How results differ, and by how much at most; None if they do not."""
    dtype = of.dtype if isinstance(of, TensorType) else None
    rtol = RTOL.get(dtype.name, 0.0) if dtype is not None else 0.0
    wrong = difference(expected, got, rtol, rtol * 1e-2)
    if wrong is None:
        return None
    a, b = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    if a.shape != b.shape:
        return wrong
    both = np.isfinite(a) & np.isfinite(b)
    apart = np.abs(a[both] - b[both])
    most = float(apart.max(initial=0.0))
    return f"{wrong} (largest difference {most:.3g})" if most else wrong


def _typed(side: Function, types: Sequence[TensorType]) -> Function:
    """A side of a rule as a function of tensors of known types.

    Raises:
        UnityError: It can't be computed of these.
    """
    params = tuple(Var(p.name, t) for p, t in zip(side.params, types, strict=True))
    given = dict(zip(side.params, params, strict=True))
    bindings, result = instantiate(side, given, _dims(side, types), dim)
    found = atom_type(result)
    assert found is not None
    return Function(params, Body((BindingBlock(bindings, dataflow=True),), result), found)


def _dims(side: Function, types: Sequence[TensorType]) -> dict[Symbol, Dim]:
    found: dict[Symbol, Dim] = {}
    for param, given in zip(side.params, types, strict=True):
        assert isinstance(param.type, TensorType)
        if isinstance(param.type.shape, tuple) and isinstance(given.shape, tuple):
            pairs = zip(param.type.shape, given.shape, strict=True)
            found.update({d: value for d, value in pairs if isinstance(d, Symbol)})
    return found


def _samples(rule: RewriteRule, tries: int, rng: np.random.Generator) -> Iterator[list[TensorType]]:
    """Types for the parameters: of known shape and dtype, many of which fit together."""
    params = [p.type for p in rule.before.params]
    for _ in range(tries):
        sizes: dict[Symbol, int] = {}
        for t in params:
            assert isinstance(t, TensorType)
            for symbol in symbols_of(*(t.shape if isinstance(t.shape, tuple) else ())):
                sizes.setdefault(symbol, _size(symbol, rng))
        square = int(rng.integers(1, 5)) if rng.random() < 0.5 else None
        rank = int(rng.integers(0, 5))
        base = [square or int(rng.integers(1, 5)) for _ in range(rank)]
        dtype = DTYPES[rng.integers(len(DTYPES))]
        yield [_sample(t, sizes, base, dtype, rng) for t in params if isinstance(t, TensorType)]


def _size(symbol: Symbol, rng: np.random.Generator) -> int:
    """A value that a symbol may have, often a small one."""
    facts = symbol.facts
    first = -(-facts.min // facts.multiple_of) * facts.multiple_of
    value = first + facts.multiple_of * int(rng.integers(0, 6))
    return value if facts.max is None or value <= facts.max else first


def _sample(
    t: TensorType,
    sizes: Mapping[Symbol, int],
    base: Sequence[int],
    dtype: DType,
    rng: np.random.Generator,
) -> TensorType:
    """A type of known shape; open shapes are the common one, a part of it, or broadcast to it."""
    if isinstance(t.shape, tuple):
        shape = tuple(evaluate(d, sizes) for d in t.shape)
    else:
        rank = t.shape if t.shape is not None else len(base)
        if t.shape is None and rng.random() < 0.3:
            rank = int(rng.integers(0, len(base) + 1))
        whole = [*(int(rng.integers(1, 4)) for _ in range(rank - len(base))), *base]
        shape = tuple(1 if rng.random() < 0.1 else d for d in whole[len(whole) - rank :])
    return TensorType(shape, t.dtype or dtype)


def _values(t: TensorType, rng: np.random.Generator) -> Array:
    """An array: plain numbers, sometimes positive ones, large ones, or only small integers."""
    assert t.dtype is not None
    assert isinstance(t.shape, tuple)
    shape = [int(d) for d in t.shape if isinstance(d, int)]
    if not t.dtype.is_float:
        if t.dtype.kind == "bool":
            return (rng.random(shape) < 0.5).astype(np.bool_)
        return rng.integers(0 if t.dtype.kind == "uint" else -4, 5, shape).astype(t.dtype.numpy)
    drawn = rng.standard_normal(shape)
    match int(rng.integers(4)):
        case 0:
            drawn = np.abs(drawn) + 0.1
        case 1:
            drawn = np.round(drawn * 2)  # zeros and equal numbers among them
        case 2:
            drawn = drawn * 10
    return np.asarray(drawn).astype(t.dtype.numpy)


def _far_values(t: TensorType, magnitude: float, rng: np.random.Generator) -> Array:
    """An array of numbers about as large as asked, or as the dtype has them; ordinary ones between.

    All are negative at times.
    """
    assert t.dtype is not None
    ordinary = _values(t, rng)
    if t.dtype.kind == "bool":
        return ordinary
    drawn = rng.standard_normal(ordinary.shape)
    if rng.random() < 0.3:
        drawn = -np.abs(drawn)
    if t.dtype.is_float:
        _, most = RANGES.get(t.dtype.name, (0.0, 200.0))
        far = np.clip(drawn * min(magnitude, most / 8), -most, most)
    else:
        signed = t.dtype.kind == "int"
        most = np.floor(2.0 ** (t.dtype.bits - signed) * 0.99)  # sums and products wrap around
        far = np.clip(np.round(drawn * min(magnitude, most)), -most if signed else 0.0, most)
    between = rng.random(ordinary.shape) < (0.3 if rng.random() < 0.5 else 0.0)
    return np.where(between, ordinary, far.astype(t.dtype.numpy))
