"""Does the module still compute the same? Checked after every pass, and bisected.

The interpreter is handed in (``NumericCheck(interpret, ...)``), since it stands beside this layer,
not below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from unity.arguments import public, public_class
from unity.errors import UnityError
from unity.ir.module import IRModule

from ..blame import fault
from ..passes import Context, Pass, Pipeline

Run: TypeAlias = Callable[[IRModule, str, Sequence[object]], object]
"""``interpret(module, function name, arguments)``."""


@public_class
@dataclass(slots=True)
class NumericCheck:
    """Runs a function before the first pass and after each one, and compares the results.

    Attributes:
        run: The interpreter.
        inputs: Arguments by function name.
        rtol: Relative tolerance, of the largest magnitude in a result.
        atol: Absolute tolerance.
    """

    run: Run
    inputs: dict[str, Sequence[object]]
    rtol: float = 1e-4
    atol: float = 1e-5
    _expected: dict[str, object] = field(default_factory=dict[str, object], init=False)

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Compute what is expected, once."""
        if not self._expected:
            self._expected = self._results(module)

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Compare.

        Raises:
            UnityError: A result differs; names the pass, the function and by how much.
        """
        try:
            results = self._results(module)
        except UnityError as error:
            raise fault(step, f"after {step.name}: {error.message}", error) from error
        except Exception as error:  # what is no program can do anything to the interpreter
            raise fault(step, f"after {step.name} it can't be run: {error!r}") from error
        for name, expected in self._expected.items():
            wrong = difference(expected, results[name], self.rtol, self.atol)
            if wrong is not None:
                raise fault(step, f"{step.name} changed what {name!r} computes: {wrong}")

    def _results(self, module: IRModule) -> dict[str, object]:
        return {name: self.run(module, name, args) for name, args in self.inputs.items()}


def difference(expected: object, got: object, rtol: float, atol: float) -> str | None:
    """How two results (arrays or nested tuples) differ beyond tolerance; None if they do not."""
    if isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(expected) != len(got):
            return f"expected {len(expected)} results, got {got!r}"
        for i, (a, b) in enumerate(zip(expected, got, strict=True)):
            wrong = difference(a, b, rtol, atol)
            if wrong is not None:
                return f"result {i}: {wrong}"
        return None
    a, b = np.asarray(expected), np.asarray(got)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"expected {a.dtype}{list(a.shape)}, got {b.dtype}{list(b.shape)}"
    if a.size == 0 or np.array_equal(a, b):
        return None
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.max(np.abs(wide_a), where=np.isfinite(wide_a), initial=0.0))
    close = np.isclose(wide_a, wide_b, rtol=0.0, atol=atol + rtol * scale, equal_nan=True)
    if bool(close.all()):
        return None
    worst = np.unravel_index(int(np.argmax(~close)), a.shape)
    place = ", ".join(str(int(i)) for i in worst)
    return f"at [{place}] expected {wide_a[worst]:.6g}, got {wide_b[worst]:.6g}"


@public
def bisect(
    pipeline: Pipeline, module: IRModule, ctx: Context, good: Callable[[IRModule], bool]
) -> Pass | None:
    """The first pass whose output is not `good`, found with O(log n) runs of prefixes.

    Args:
        pipeline: The passes to blame.
        module: What it is run on; `good` itself.
        ctx: Given to the passes.
        good: The test, a comparison with the interpreter for instance. It is taken that what one
            pass broke stays broken.

    Returns:
        The culprit; None if the whole pipeline's output is good.
    """
    low, high = 0, len(pipeline.passes)
    if good(pipeline.run(module, ctx)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if good(Pipeline(pipeline.passes[:middle]).run(module, ctx)):
            low = middle
        else:
            high = middle
    return pipeline.passes[low]
