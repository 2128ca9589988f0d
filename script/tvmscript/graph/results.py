"""Results of Relax's operators that ours give in another form: tuples, one of two, the operand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ...parser.source import Source
from ..syntax import at_place, constant, said, written
from .before import Naming
from .norms import Given, batch_norm, group_norm, instance_norm, layer_norm

_PAD_MODES: Mapping[str, str] = {"replicate": "edge", "circular": "wrap"}


def result_of(source: Source, path: str, call: ast.Call, given: Given, named: Naming) -> ast.expr:
    """What a call gives in TVM, in terms of our call.

    Args:
        source: For errors.
        path: The operator, ``R.topk``.
        call: Ours.
        given: What TVM's call says.
        named: Gives what is used several times a name before the statement.

    Raises:
        UnityError: It gives what Unity can't.
    """
    rule = _RULES.get(path)
    return call if rule is None else rule(source, call, given, named)


def _topk(source: Source, call: ast.Call, given: Given, _named: Naming) -> ast.expr:
    """``ret_type`` asks for both values and indices, or for one of them."""
    kind = constant(given.get("ret_type", ast.Constant("both")))
    if kind == "both":
        return call
    if kind not in ("values", "indices"):
        message = f'R.topk: \'ret_type\' is "both", "values" or "indices", got {kind!r}'
        raise source.error(given["ret_type"], message)
    place = ast.Constant(0 if kind == "values" else 1)
    return at_place(ast.Subscript(call, place, ast.Load()), call)


def _take(source: Source, call: ast.Call, given: Given, named: Naming) -> ast.expr:
    """Indices out of bounds: ``wrap`` counts from the other end, ``clip`` takes the last one."""
    mode = constant(given.get("mode", ast.Constant("fast")))
    if mode == "fast":
        return call
    texts = {
        "wrap": "R.take(x, i % x.shape[axis], axis=k)",
        "clip": "R.take(x, R.minimum(R.maximum(i, 0), x.shape[axis] - 1), axis=k)",
    }
    if not isinstance(mode, str) or mode not in texts:
        raise source.error(
            given["mode"],
            f"Unity has no mode={ast.unparse(given['mode'])} for R.take",
            'it has "fast", "wrap" and "clip"',
        )
    axis = given.get("axis", ast.Constant(None))
    parts = {
        "x": named(given["x"], ours=True),
        "i": named(given["indices"], "indices", ours=True),
        "axis": axis if said(axis) else ast.Constant(0),
        "k": axis,
    }
    return written(texts[mode], call, **parts)


def _one_hot(_source: Source, call: ast.Call, given: Given, named: Naming) -> ast.expr:
    """A negative index is nowhere in TVM; ours counts from the end, back to `-depth`."""
    depth, indices = given.get("depth"), given.get("indices")
    if depth is None or indices is None:
        return call
    whole = written('R.astype(x, "int64")', call, x=indices)
    index = named(whole, "indices", ours=True)
    for keyword in call.keywords:
        if keyword.arg == "indices":
            keyword.value = written("R.where(i < 0, -1 - d, i)", call, i=index, d=depth)
    return call


def _median(_source: Source, call: ast.Call, _given: Given, _named: Naming) -> ast.expr:
    """One axis is a number, in a list or not: the indices are given as well."""
    for keyword in call.keywords:
        match keyword:
            case ast.keyword("axis", ast.List([one]) | ast.Tuple([one])):
                keyword.value = one
            case _:
                pass
    return call


def _pad(_source: Source, call: ast.Call, _given: Given, _named: Naming) -> ast.expr:
    """Torch's names of two ways to go on beyond the border are numpy's here."""
    for keyword in call.keywords:
        mode = constant(keyword.value) if keyword.arg == "pad_mode" else None
        if isinstance(mode, str) and mode in _PAD_MODES:
            keyword.value = at_place(ast.Constant(_PAD_MODES[mode]), keyword.value)
    return call


def _adaptive(_source: Source, call: ast.Call, given: Given, _named: Naming) -> ast.expr:
    """Without ``output_size`` there are as many means as values."""
    return call if said(given.get("output_size")) else given["data"]


def _attention(_source: Source, call: ast.Call, given: Given, _named: Naming) -> ast.expr:
    """The diagonal of ``BottomRight`` lies ``abs(keys - queries)`` later, as TVM makes it."""

    def mask(value: ast.expr) -> ast.expr:
        is_bottom = constant(value) == "BottomRight"
        return at_place(ast.Constant("BottomRightAbs"), value) if is_bottom else value

    if ast.dump(given["query"]) != ast.dump(given["key"]):
        call.args = [mask(value) for value in call.args]
        for keyword in call.keywords:
            keyword.value = mask(keyword.value)
    return call


_RULES: Mapping[str, Callable[[Source, ast.Call, Given, Naming], ast.expr]] = {
    "R.nn.batch_norm": batch_norm,
    "R.nn.layer_norm": layer_norm,
    "R.nn.group_norm": group_norm,
    "R.nn.instance_norm": instance_norm,
    "R.nn.attention": _attention,
    "R.nn.attention_bias": _attention,
    "R.take": _take,
    "R.one_hot": _one_hot,
    "R.nn.pad": _pad,
    "R.median": _median,
    "R.topk": _topk,
    **{f"R.nn.adaptive_avg_pool{rank}d": _adaptive for rank in (1, 2, 3)},
}
