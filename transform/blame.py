"""Whose mistake it is when a pass fails: the program's, or ours.

A verified program that our own passes refuse is refused by a `UnityError`. Anything else that comes
out of them is an invariant of ours that broke: an assertion, a key that is missing, a module that a
pass left ill-formed so that a later one stumbles. Those become an `InternalError` that names the
pass which is to blame, so that nobody looks for the mistake in a program that has none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from unity.errors import InternalError, UnityError
from unity.ir.module import IRModule, MissingDefinitionError
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types

if TYPE_CHECKING:
    from .passes import Context, Pass

HINT = 'please report it, with the program; compile(..., trace="folder") shows what each pass made'
_OURS = frozenset({"unity", "numpy", "ml_dtypes", "sympy", "mpmath", "llvmlite", "onnx"})
_OF_THE_MACHINE = (OSError, MemoryError)


def blamed(
    error: Exception,
    failed: Pass | str,
    steps: Sequence[Pass],
    start: IRModule,
    given: IRModule,
    ctx: Context,
) -> InternalError | None:
    """What to raise instead of what a step raised; None if it told of a mistake of the user's.

    Args:
        error: What it raised.
        failed: The pass, or what a step of ours that is none is called.
        steps: The passes that ran before it.
        start: The module that the first of them was given.
        given: The module that the failed step was given.
        ctx: What they were given besides.
    """
    if isinstance(error, (InternalError, *_OF_THE_MACHINE)):
        return None
    name = failed if isinstance(failed, str) else f"the pass {failed.name}"
    wrong = ill_formed(given)
    if wrong is not None:
        return _of_an_earlier_one(error, name, steps, start, wrong, ctx)
    is_mistake = isinstance(error, UnityError) and not isinstance(error, MissingDefinitionError)
    ours = isinstance(failed, str) or is_ours(failed)
    if is_mistake or not ours or _is_of_users_code(error):
        return None
    return _bug(f"{name} failed: {described(error)}")


def fault(step: Pass, what: str, error: UnityError | None = None) -> UnityError:
    """What a pass did wrong, for those who look on: a bug of ours where all it did is ours."""
    if _all_ours(step):
        return _bug(what, error)
    return UnityError(what) if error is None else UnityError(what, error.span, error.hint)


def _bug(what: str, error: UnityError | None = None) -> InternalError:
    span = None if error is None else error.span
    return InternalError(f"a bug of Unity, not of your program: {what}", span, HINT)


def is_ours(step: Pass) -> bool:
    """Whether a pass is Unity's own."""
    return type(step).__module__.partition(".")[0] == "unity"


def _all_ours(step: Pass) -> bool:
    """Whether a pass is Unity's own and follows no rules that others wrote."""
    return is_ours(step) and all(map(_is_own, step.rules_followed))


def _is_own(rule: object) -> bool:
    return callable(rule) and getattr(rule, "__module__", "").partition(".")[0] == "unity"


def ill_formed(module: IRModule) -> UnityError | None:
    """What is wrong with a module's form, if anything is."""
    try:
        verify(module)
        check_types(module)
    except UnityError as error:
        return error
    return None


def described(error: Exception) -> str:
    """An error in a sentence: `UnityError` speaks for itself, others need their names."""
    if isinstance(error, UnityError):
        return error.message
    return f"{type(error).__name__}: {error}"


def _of_an_earlier_one(
    error: Exception,
    failed: str,
    steps: Sequence[Pass],
    start: IRModule,
    wrong: UnityError,
    ctx: Context,
) -> InternalError | None:
    """The blame for an ill-formed module: of the first pass that gives one."""
    module = start
    if ill_formed(start) is not None:
        return None
    for step in steps:
        module = step(module, replace(ctx, instruments=(), reports={}))
        found = ill_formed(module)
        if found is None:
            continue
        what = f"the pass {step.name} gave an ill-formed module: {found.message}"
        if _all_ours(step):
            return _bug(f"{what}\n{failed} failed on it: {described(error)}", wrong)
        error.add_note(what)
        return None
    return None


def _is_of_users_code(error: Exception) -> bool:
    """Whether an error came out of code that is neither ours nor of what we stand on."""
    return any(name not in _OURS and name not in sys.stdlib_module_names for name in _files(error))


def _files(error: Exception) -> Iterator[str]:
    """The packages whose code an error went through, from the pass on."""
    trace = error.__traceback__
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        trace = trace.tb_next
