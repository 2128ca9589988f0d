"""TVM's normalizations in terms of ours: by the batch, without scale or offset, over other axes.

Ours take the axes that models take: a batch norm the moving statistics, a group or instance norm
all axes but the batch's and the channels'.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...parser.source import Source
from ..syntax import at_place, constant
from .before import Naming

Given = Mapping[str, ast.expr]
"""Operands by TVM's names, in our spelling."""


def batch_norm(source: Source, call: ast.Call, given: Given, named: Naming) -> ast.expr:
    """The normalized values and both statistics.

    Where ``training`` is not said to be False, the mean and variance are the batch's, and the
    moving ones move towards them by ``momentum``; else they stay.
    """
    training = _flag(source, given, "training")
    _as_flags(source, call, given)
    if not training:
        results = [call, given["moving_mean"], given["moving_var"]]
        return at_place(ast.Tuple(results, ast.Load()), call)
    momentum = constant(given.get("momentum", ast.Constant(0.1)))
    axis = constant(given["axis"])
    if not isinstance(momentum, int | float) or not isinstance(axis, int):
        raise source.error(call, "R.nn.batch_norm takes numbers for 'axis' and 'momentum'")
    x = named(given["data"], "data", ours=True)
    along = f"{axis}" if axis >= 0 else f"{x.id}.ndim - {-axis}"
    axes = f"tuple(range({along})) + tuple(range({along} + 1, {x.id}.ndim))"
    mean, variance = (
        named(_parsed(f"R.{kind}({x.id}, {axes})", call), kind, ours=True)
        for kind in ("mean", "variance")
    )
    kept = {"x": x, "mean": mean, "variance": variance}
    for argument in call.keywords:
        argument.value = kept.get(argument.arg or "", argument.value)
    moving: list[ast.expr] = []
    for name, batch in (("moving_mean", mean), ("moving_var", variance)):
        old = named(given[name], name, ours=True)
        moving.append(_parsed(f"{old.id} * {1 - momentum!r} + {batch.id} * {momentum!r}", call))
    return at_place(ast.Tuple([call, *moving], ast.Load()), call)


def layer_norm(source: Source, call: ast.Call, given: Given, _named: Naming) -> ast.expr:
    """With or without scale and offset, as TVM says it; what TVM 0.27 makes has both always."""
    _as_flags(source, call, given)
    return call


def group_norm(source: Source, call: ast.Call, given: Given, named: Naming) -> ast.expr:
    """Over a group of channels and all axes but the batch's, as ours."""
    _as_flags(source, call, given)
    axes, channel = _axes(source, call, given)
    if not _all_but_the_batch(call, axes, channel, named):
        raise source.error(
            given["axes"],
            f"Unity has no axes={ast.unparse(given['axes'])} for R.nn.group_norm",
            "it normalizes over all axes but the batch's and the channels'",
        )
    return call


def instance_norm(source: Source, call: ast.Call, given: Given, named: Naming) -> ast.expr:
    """Over any axes: ours where these are all but the batch's and the channels'."""
    _as_flags(source, call, given)
    axes, channel = _axes(source, call, given)
    if _all_but_the_batch(call, axes, channel, named):
        return call
    epsilon = ast.unparse(given.get("epsilon", ast.Constant(1e-5)))
    x = named(_argument(call, "x"), "data", ours=True).id
    along = f"{channel} % {x}.ndim"
    ones = f"(1,) * ({along}) + (-1,) + (1,) * ({x}.ndim - 1 - {along})"
    gamma, beta = (named(_argument(call, n), n, ours=True).id for n in ("gamma", "beta"))
    mean, variance = (f"R.{kind}({x}, {axes}, keepdims=True)" for kind in ("mean", "variance"))
    normal = f"({x} - {mean}) / R.sqrt({variance} + {epsilon})"
    return _parsed(f"{normal} * R.reshape({gamma}, {ones}) + R.reshape({beta}, {ones})", call)


def _all_but_the_batch(call: ast.Call, axes: tuple[int, ...], channel: int, named: Naming) -> bool:
    """Whether axes are all but the first and the channels', of a tensor of the rank that needs."""
    rank = len(axes) + 2
    if not all(-rank <= axis < rank for axis in (*axes, channel)):
        return False
    if {axis % rank for axis in axes} | {channel % rank} != set(range(1, rank)):
        return False
    x = named(_argument(call, "x"), "data", ours=True)
    for argument in call.keywords:
        if argument.arg == "x":
            argument.value = x
    number = _parsed(f"{x.id}.ndim", call)
    named.require(number, rank, f"{x.id!r} must have rank {rank} for axes={list(axes)}", call)
    return True


def _axes(source: Source, call: ast.Call, given: Given) -> tuple[tuple[int, ...], int]:
    found, channel = constant(given["axes"]), constant(given["channel_axis"])
    axes = (found,) if isinstance(found, int) else found
    if (
        not isinstance(axes, tuple | list)
        or not all(isinstance(a, int) for a in axes)
        or not isinstance(channel, int)
    ):
        raise source.error(call, "'axes' and 'channel_axis' must be integers")
    return tuple(axes), channel


def _argument(call: ast.Call, name: str) -> ast.expr:
    return next(k.value for k in call.keywords if k.arg == name)


def _flag(source: Source, given: Given, name: str) -> bool:
    """A bool that is True where it is left out."""
    value = constant(given.get(name, ast.Constant(True)))
    if value not in (True, False):
        raise source.error(given[name], f"{name!r} must be True or False, got {value!r}")
    return bool(value)


def _as_flags(source: Source, call: ast.Call, given: Given) -> None:
    """Without scale, gamma is 1; without center, beta is 0."""
    for flag, name, without in (
        ("scale", "gamma", "R.ones_like"),
        ("center", "beta", "R.zeros_like"),
    ):
        if not _flag(source, given, flag):
            for argument in call.keywords:
                if argument.arg == name:
                    made = ast.Call(_parsed(without, call), [argument.value], [])
                    argument.value = at_place(made, call)


def _parsed(text: str, like: ast.expr) -> ast.expr:
    """An expression from its text, at the place of another."""
    made = ast.parse(text, mode="eval").body
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.keyword):
            ast.copy_location(node, like)
    return made
