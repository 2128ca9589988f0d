"""Shapes among the results of a function: to callers from outside they are tuples of numbers."""

from __future__ import annotations

from dataclasses import replace

from unity.runtime import bytecode as bc


def with_dims(code: bc.FunctionCode) -> bc.FunctionCode:
    """A function that gives the dims of shapes among its results, each a number.

    That is the same to callers from outside, and numbers need no Python. Functions of the program
    get shapes from each other.
    """
    *body, last = code.code
    if not isinstance(last, bc.Return):
        return code
    registers, labels = list(code.registers), list(code.labels[:-1])

    def numbers(spec: bc.Spec, tree: bc.Tree) -> tuple[bc.Spec, bc.Tree]:
        if isinstance(spec, bc.TupleSpec) and isinstance(tree, tuple):
            pairs = [numbers(s, t) for s, t in zip(spec.fields, tree, strict=True)]
            return bc.TupleSpec(tuple(s for s, _ in pairs)), tuple(t for _, t in pairs)
        if not isinstance(spec, bc.ShapeSpec) or not isinstance(tree, int):
            return spec, tree
        match registers[tree]:
            case bc.ShapeSpec(tuple(dims)):
                made = [bc.ScalarSpec("int64", size) for size in dims]
                places = range(len(registers), len(registers) + len(made))
                registers.extend(made)
                body.extend(bc.MakeScalar(k, d, "int64") for k, d in zip(places, dims, strict=True))
                labels.extend("dim of a result" for _ in dims)
                return bc.TupleSpec(tuple(made)), tuple(places)
            case _:
                return spec, tree

    result, value = numbers(code.result, last.value)
    if value == last.value:
        return code
    return replace(
        code,
        result=result,
        registers=tuple(registers),
        code=(*body, bc.Return(value)),
        labels=(*labels, code.labels[-1]),
    )
