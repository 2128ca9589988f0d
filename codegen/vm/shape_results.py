"""Shapes among the results of a function: to callers from outside they are tuples of numbers."""

from __future__ import annotations

from dataclasses import replace

from unity.runtime import program as p


def with_dims(code: p.FunctionCode) -> p.FunctionCode:
    """A function that gives the dims of shapes among its results, each a number.

    That is the same to callers from outside, and numbers need no Python. Functions of the program
    get shapes from each other.
    """
    *body, last = code.code
    if not isinstance(last, p.Return):
        return code
    registers, labels = list(code.registers), list(code.labels[:-1])

    def numbers(spec: p.Spec, tree: p.Tree) -> tuple[p.Spec, p.Tree]:
        if isinstance(spec, p.TupleSpec) and isinstance(tree, tuple):
            pairs = [numbers(s, t) for s, t in zip(spec.fields, tree, strict=True)]
            return p.TupleSpec(tuple(s for s, _ in pairs)), tuple(t for _, t in pairs)
        if not isinstance(spec, p.ShapeSpec) or not isinstance(tree, int):
            return spec, tree
        match registers[tree]:
            case p.ShapeSpec(tuple(dims)):
                made = [p.ScalarSpec("int64", size) for size in dims]
                places = range(len(registers), len(registers) + len(made))
                registers.extend(made)
                body.extend(p.MakeScalar(k, d, "int64") for k, d in zip(places, dims, strict=True))
                labels.extend("dim of a result" for _ in dims)
                return p.TupleSpec(tuple(made)), tuple(places)
            case _:
                return spec, tree

    result, value = numbers(code.result, last.value)
    if value == last.value:
        return code
    return replace(
        code,
        result=result,
        registers=tuple(registers),
        code=(*body, p.Return(value)),
        labels=(*labels, code.labels[-1]),
    )
