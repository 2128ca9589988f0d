"""Relay's passes by name: changing a module of Relay, leaving it to the compiler, or refused.

`REWRITES` and `ConvertLayout` change a module; `InferType` checks it, and `ToMixedPrecision` notes
its precision. All others leave it as it is and say so: translating it and `unity.compile` do what
they did (`COUNTERPARTS` says where).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from logging import getLogger
from types import SimpleNamespace
from typing import Any

from unity.errors import UnityError
from unity.frontend.relay.translator import translate
from unity.ir.module import IRModule as OurModule

from .module import IRModule
from .pass_context import PassContext, build_config
from .passes import REWRITES, Rewrite, convert_layout
from .places import here

log = getLogger("unity")
__all__ = ["PassContext", "Sequential", "build_config", "function_pass", "module_pass"]

_TRANSLATING = "translating does it"
COUNTERPARTS: dict[str, str] = {
    "AlterOpLayout": "ConvertLayout, ConvertWinograd, PackWeights",
    "AnnotateTarget": 'resolve="engine:NAME" finds what an engine can take',
    "BackwardFoldScaleAxis": "FoldBatchNorm",
    "BatchingOps": "MergeParallel, MergeConvolutions",
    "CanonicalizeCast": "SimplifyOps",
    "CanonicalizeOps": _TRANSLATING,
    "CapturePostDfsIndexInSpans": "call sites have names",
    "CollagePartition": 'resolve="measure" chooses who computes what',
    "CombineParallelBatchMatmul": "MergeParallel",
    "CombineParallelConv2D": "MergeConvolutions",
    "CombineParallelDense": "MergeParallel",
    "ConvertLayout": "ConvertLayout chooses blocks of channels",
    "DeadCodeElimination": "EliminateDeadCode",
    "Defunctionalization": _TRANSLATING,
    "DefuseOps": _TRANSLATING,
    "DivToMul": "divisions stay what they are",
    "DynamicToStatic": "sizes are followed while translating",
    "EliminateCommonSubexpr": "EliminateCommonSubexpr",
    "EtaExpand": _TRANSLATING,
    "FastMath": "functions have a bound of error of their own",
    "FlexibleShapeDispatch": "sizes are symbols: one program is for all of them (dynamic=)",
    "FoldConstant": "FoldConstants",
    "FoldExplicitPadding": "FuseOps joins a padding and what reads it",
    "FoldScaleAxis": "FoldBatchNorm",
    "ForwardFoldScaleAxis": "FoldBatchNorm",
    "FuseOps": "FuseOps, FuseTir",
    "InferType": _TRANSLATING,
    "Inline": _TRANSLATING,
    "InlineCompilerFunctionsBoundTo": _TRANSLATING,
    "LambdaLift": _TRANSLATING,
    "Legalize": "LegalizeOps",
    "MarkCompilerFunctionsAsExtern": 'resolve="engine:NAME" gives them to an engine',
    "MergeCompilerRegions": 'resolve="engine:NAME" joins them',
    "MergeComposite": "rewrite rules: unity.rewrite_rule",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols": 'resolve="engine:NAME"',
    "PartitionGraph": 'resolve="engine:NAME" cuts them out',
    "PlanDevices": "there is one device",
    "RemoveStandaloneReshapes": "reshapes are views",
    "RemoveUnusedFunctions": _TRANSLATING,
    "RewriteAnnotatedOps": "there is one device",
    "RewriteDeviceAnnotation": "there is one device",
    "SimplifyExpr": "SimplifyOps, SimplifyParts",
    "SimplifyExprPostAlterOp": "SimplifyOps, SimplifyParts",
    "SimplifyFCTranspose": "PackWeights",
    "SimplifyInference": "translating, then FoldBatchNorm",
    "SplitArgs": "there is no limit of arguments",
    "ToANormalForm": "programs always have it",
    "ToBasicBlockNormalForm": "programs always have A-normal form",
    "ToGraphNormalForm": "programs always have A-normal form",
    "ToMixedPrecision": 'unity.compile(precision="f16")',
}
"""What does here what a pass did: passes of our pipeline, or something else."""
_OF_MODULES = "passes are for modules: relay.transform.FoldConstant()(mod)"
REFUSED: dict[str, str] = {
    "AnnotateSpans": "files have places of their own",
    "ChangeBatch": 'unity.compile(model, dynamic={"data": {0: 8}}) changes the batch',
    "FoldConstantExpr": _OF_MODULES,
    "LayoutConfig": "ConvertLayout takes a layout for each operator",
    "ToANormalFormExpr": _OF_MODULES,
    "ToCPS": "nothing does it; closures are put in place",
    "gradient": "models are compiled for inference",
    "recast": 'unity.compile(precision="f16") computes in another precision',
    "to_cps": "nothing does it; closures are put in place",
    "un_cps": "nothing does it; closures are put in place",
    "FirstOrderGradient": "models are compiled for inference",
    "LazyGradientInit": "models are compiled for inference",
    "ManifestAlloc": "made by TVM's lowering",
    "ManifestLifetimes": "made by TVM's lowering",
    "PartialEvaluate": "nothing does it; closures are put in place",
    "RelayToTIRTargetHook": "made for backends of TVM",
    "FakeQuantizationToInteger": "quantize and dequantize are computed as they are written",
    "FlattenAtrousConv": "nothing does it",
    "DenseToSparse": "there are no sparse weights",
    "Conv2dToSparse": "there are no sparse weights",
    "Conv2dToSparse2": "there are no sparse weights",
}
"""Passes without a counterpart."""


class Pass:
    """A pass of TVM.

    Args:
        name: What it is called.
        run: What it does to a module; nothing if not given.
    """

    def __init__(self, name: str, run: Callable[[Any], Any] | None = None) -> None:
        self.name = name
        self._run = run

    @property
    def info(self) -> SimpleNamespace:
        """What TVM says of a pass."""
        return SimpleNamespace(name=self.name, opt_level=0, required=[])

    @property
    def counterpart(self) -> str:
        """What does its work here when a model is compiled, whatever it does to the module."""
        return COUNTERPARTS.get(self.name, "it is the script's own")

    def __call__(self, module: Any) -> Any:
        """The module that it leaves."""
        return module if self._run is None else self._run(module)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.counterpart}>"


class Sequential(Pass):
    """Passes one after the other; those that the context disables are left out."""

    def __init__(
        self,
        passes: Sequence[Callable[[Any], Any]] = (),
        opt_level: int = 2,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        **_: object,
    ) -> None:
        super().__init__(name)
        self.passes = list(passes)

    def __call__(self, module: Any) -> Any:
        """The module that the last of them leaves."""
        disabled = PassContext.current().disabled
        for each in self.passes:
            if not isinstance(each, Pass) or each.name not in disabled:
                module = each(module)
        return module


def module_pass(
    pass_func: Callable[..., Any] | None = None, opt_level: int = 0, name: str = "", **_: object
) -> Any:
    """A pass of a script's own: ``f(module, context) -> module``."""
    if pass_func is None:
        return lambda f: module_pass(f, opt_level, name)
    run = pass_func if callable(pass_func) else None
    if isinstance(pass_func, type):
        return lambda *args, **named: _of_object(pass_func(*args, **named), "transform_module")
    assert run is not None
    return Pass(name or run.__name__, lambda module: run(module, PassContext.current()))


def function_pass(
    pass_func: Callable[..., Any] | None = None, opt_level: int = 0, name: str = "", **_: object
) -> Any:
    """A pass of a script's own over functions: ``f(function, module, context) -> function``."""
    if pass_func is None:
        return lambda f: function_pass(f, opt_level, name)
    if isinstance(pass_func, type):
        return lambda *args, **named: _of_object(pass_func(*args, **named), "transform_function")
    run = pass_func
    return Pass(name or run.__name__, lambda module: _each(run, module))


def _of_object(found: object, method: str) -> Pass:
    run = getattr(found, method)
    name = type(found).__name__
    if method == "transform_module":
        return Pass(name, lambda module: run(module, PassContext.current()))
    return Pass(name, lambda module: _each(run, module))


def _each(run: Callable[..., Any], module: Any) -> IRModule:
    if not isinstance(module, IRModule):
        raise UnityError(
            "a function pass takes a module of Relay",
            here(),
            "relay.frontend.from_onnx gives one of ours, which unity.rewrite_rule changes: "
            "unity.pipeline().insert_before(FuseOps, Rewrite(rules)), tutorial 7",
        )
    found = IRModule.of(module.syntax)
    for name in module:
        found[name] = run(module[name], module, PassContext.current())
    return found


def _checked(module: Any) -> Any:
    """`InferType`: ill-typed programs are refused."""
    if isinstance(module, IRModule) and "main" in set(module):
        known = module.syntax
        if all(p.type is not None for p in known.functions["main"].params):
            translate(known)
    return module


def _narrowed(module: Any) -> Any:
    match module:
        case IRModule():
            return module.with_precision("f16")
        case OurModule():
            return replace(module, attrs=module.attrs.with_(precision="f16"))
        case _:
            raise UnityError("ToMixedPrecision takes a module", here())


def _desired(given: object) -> dict[str, list[str]]:
    """What `ConvertLayout` is asked for, checked."""
    found: dict[str, list[str]] = {}
    for operator, layouts in given.items() if isinstance(given, Mapping) else ():
        if isinstance(layouts, list | tuple) and layouts:
            found[str(operator)] = [str(layout) for layout in layouts]
    if not isinstance(given, Mapping) or len(found) < len(given):
        raise UnityError(
            "ConvertLayout takes layouts by operator", here(), '{"nn.conv2d": ["NHWC", "default"]}'
        )
    return found


def _rewriting(name: str, rewrite: Rewrite) -> Callable[[Any], Any]:
    def run(module: Any) -> Any:
        if isinstance(module, OurModule):  # what `from_onnx` gives
            return _left(name)(module)
        if not isinstance(module, IRModule):
            raise UnityError(f"{name} takes a module, got {type(module).__name__}", here())
        return module.rewritten(rewrite)

    return run


def _left(name: str) -> Callable[[Any], Any]:
    def run(module: Any) -> Any:
        if name not in _TOLD:
            _TOLD.add(name)
            log.warning(
                "relay.transform.%s leaves the module as it is; when it is compiled: %s",
                name,
                COUNTERPARTS[name],
            )
        return module

    return run


def _printed(module: Any) -> Any:
    print(module)
    return module


def infer_type_local(expr: Any) -> Any:
    """The type of an expression."""
    return expr.checked_type


_TOLD: set[str] = set()
"""Passes of which was said that they do nothing."""
_RUN: dict[str, Callable[[Any], Any]] = {
    "InferType": _checked,
    "ToMixedPrecision": _narrowed,
    **{name: _rewriting(name, rewrite) for name, rewrite in REWRITES.items()},
}


def __getattr__(name: str) -> Callable[..., Any]:
    if name == "InferTypeLocal":
        return infer_type_local
    if name == "PrintIR":
        return lambda *_, **__: Pass(name, _printed)
    if name in REFUSED:
        raise UnityError(f"no pass does what {name} did: {REFUSED[name]}", here())
    if name not in COUNTERPARTS:
        raise AttributeError(f"Relay's passes are not known to have {name!r}")

    def made(*options: object, **named: object) -> Pass:
        if name == "ToMixedPrecision" and (options or ("float16",))[0] != "float16":
            raise UnityError(f"ToMixedPrecision to {options[0]}", here(), "float16 is known")
        if name == "ConvertLayout":
            desired = options[0] if options else named.get("desired_layouts")
            return Pass(name, _rewriting(name, partial(convert_layout, desired=_desired(desired))))
        return Pass(name, _RUN.get(name) or _left(name))

    return made
