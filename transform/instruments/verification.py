"""Verification around every pass."""

from __future__ import annotations

from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.verify import verify
from unity.op.check import check_types

from ..passes import Context, Pass


@dataclass(frozen=True, slots=True)
class Verify:
    """Raises a `UnityError` naming the pass whose output does not verify."""

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Check what the pass is given."""
        self._check(module, f"before {step.name}")

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Check what the pass gave."""
        self._check(module, f"after {step.name}")

    def _check(self, module: IRModule, place: str) -> None:
        try:
            verify(module)
            check_types(module)
        except UnityError as error:
            raise UnityError(f"{place}: {error.message}", error.span, error.hint) from error
