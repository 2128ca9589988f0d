"""Verification around every pass."""

from __future__ import annotations

from dataclasses import dataclass

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.module import IRModule

from ..blame import fault, ill_formed
from ..passes import Context, Pass


@public_class
@dataclass(frozen=True, slots=True)
class Verify:
    """Raises a `UnityError` naming the pass whose output does not verify.

    It is an `InternalError` if the pass is one of Unity's own.
    """

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Check what the pass is given."""
        error = ill_formed(module)
        if error is not None:
            raise UnityError(f"before {step.name}: {error.message}", error.span, error.hint)

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Check what the pass gave."""
        error = ill_formed(module)
        if error is not None:
            raise fault(step, f"after {step.name}: {error.message}", error)
