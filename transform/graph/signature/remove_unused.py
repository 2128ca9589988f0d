"""RemoveUnused: what no call needs goes, in bodies, parameters, results and functions."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.module import IRModule

from ...passes import Context, Pass
from ..simplify.dce import EliminateDeadCode
from .remove_unused_outputs import RemoveUnusedOutputs
from .remove_unused_parameters import RemoveUnusedParameters


@dataclass(frozen=True, slots=True)
class RemoveUnused(Pass):
    """`EliminateDeadCode`, `RemoveUnusedOutputs` and `RemoveUnusedParameters` until nothing goes.

    Each of them alone leaves what becomes unused by another: a value that only an unused parameter
    was given, a parameter that only an unused result was made of.

    Attributes:
        entries: As in `EliminateDeadCode`.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function(attrs={"private": True})
    ... def act(a: f32[Tensor, 4], b: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     c = R.exp(a)
    ...     return c
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     y = R.negative(x)
    ...     z = act(x, y)
    ...     return z
    ... ''')
    >>> print(print_module(RemoveUnused()(before, Context())), end="")
    @script.function(attrs={"private": True})
    def act(a: f32[Tensor, 4]) -> f32[Tensor, 4]:
        c = R.exp(a)
        return c
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        z = act(x)
        return z
    """

    entries: tuple[str, ...] | None = None

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All three, until they find nothing."""
        passes = (EliminateDeadCode(self.entries), RemoveUnusedOutputs(), RemoveUnusedParameters())
        while True:
            before = module
            for step in passes:
                module = step(module, ctx)
            if module is before:
                return module
