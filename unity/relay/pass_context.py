"""`PassContext`: how scripts say, around what they build, which passes run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from logging import getLogger
from types import TracebackType
from typing import Self

from unity.transform import Pipeline

log = getLogger("unity")

OPTIONAL: dict[str, tuple[str, ...]] = {
    "FuseOps": ("FuseOps", "FuseTir", "FuseReaders"),
    "FoldConstant": ("FoldConstants",),
    "SimplifyExpr": ("SimplifyOps", "SimplifyParts"),
    "SimplifyInference": ("FoldBatchNorm",),
    "FoldScaleAxis": ("FoldBatchNorm",),
    "AlterOpLayout": ("ConvertLayout", "ConvertWinograd", "PackWeights"),
    "ConvertLayout": ("ConvertLayout",),
    "EliminateCommonSubexpr": ("EliminateCommonSubexpr",),
    "CombineParallelConv2D": ("MergeConvolutions",),
    "CombineParallelDense": ("MergeParallel",),
    "CombineParallelBatchMatmul": ("MergeParallel",),
}
"""Passes of TVM that can be disabled, and those of ours that do their work."""


class PassContext:
    """How programs in a block are built.

    Args:
        opt_level: Said for TVM; all that is fast runs at every level.
        required_pass: Passes that run anyway.
        disabled_pass: Passes, by TVM's names, that are not to run.
        instruments: Refused unless empty.
        config: Options of TVM's passes, which say nothing here.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[object] | None = None,
        config: Mapping[str, object] | None = None,
        **others: object,
    ) -> None:
        self.opt_level = opt_level
        self.disabled = tuple(disabled_pass or ())
        self._token: Token[PassContext | None] | None = None
        said = [*(config or {}), *others, *(["instruments"] if instruments else [])]
        if said:
            log.warning(
                "PassContext: %s say nothing here; unity.compile(instruments=, check=, trace=) "
                "watches passes", ", ".join(said),
            )  # fmt: skip
        odd = [name for name in self.disabled if name not in OPTIONAL]
        if odd:
            log.warning("PassContext: no pass does what %s did, to be disabled", ", ".join(odd))

    @staticmethod
    def current() -> PassContext:
        """That of the innermost block."""
        return _CURRENT.get() or PassContext()

    def changed(self, passes: Pipeline) -> Pipeline:
        """A pipeline without what is disabled."""
        off = {ours for name in self.disabled for ours in OPTIONAL.get(name, ())}
        kinds = {type(p) for p in passes.passes if p.name in off}
        return passes.without(*kinds) if kinds else passes

    def __enter__(self) -> Self:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)


_CURRENT: ContextVar[PassContext | None] = ContextVar("pass_context", default=None)


def build_config(opt_level: int = 2, **options: object) -> PassContext:
    """What `PassContext` was called before TVM 0.7."""
    disabled = options.pop("disabled_pass", None)
    options.pop("required_pass", None)
    names = disabled if isinstance(disabled, list | tuple | set) else ()
    return PassContext(opt_level, disabled_pass=[str(n) for n in names], config=options)
