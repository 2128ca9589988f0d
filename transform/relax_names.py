"""What Relax's passes are called here: for who ports a pipeline, for errors and for the docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from unity.errors import UnityError

_PACKAGES = (
    "unity.transform.graph",
    "unity.transform.graph.resolve",
    "unity.transform.schedule",
    "unity.transform.rules.by_record",
    "unity.transform.tensor",
)
"""Where passes are imported from."""


@dataclass(frozen=True, slots=True)
class Here:
    """What there is in place of a pass of Relax.

    Attributes:
        passes: Our passes that do the same; none if nothing has to be done, or something else does.
        note: What else to know.
    """

    passes: tuple[str, ...]
    note: str = ""


def _pass(*passes: str, note: str = "") -> Here:
    return Here(passes, note)


def _else(note: str) -> Here:
    return Here((), note)


RELAX: Mapping[str, Here] = {
    "AdjustMatmulOrder": _else("write products in the order wanted, or Rewrite(RewriteRule(...))"),
    "AllocateWorkspace": _else("libraries' workspaces are theirs"),
    "AlterOpImpl": _else("unity.compile(model, resolve=...) chooses what computes an operator"),
    "AnnotateTIROpPattern": _pass("LegalizeOps", note="kernels are made with their patterns"),
    "AttachAttrLayoutFreeBuffers": _else("weights are laid out by PackWeights and ConvertLayout"),
    "AttachExternModules": _else("libraries are registered, and linked with what calls them"),
    "AttachGlobalSymbol": _else("a function's name is its key in the module"),
    "BindParams": _pass("BindParams"),
    "BindSymbolicVars": _pass("BindSymbolicVars", note="of one function, by the sizes' names"),
    "BundleModelParams": _else("parameters are given one by one"),
    "CallTIRRewrite": _pass("LowerCalls"),
    "CanonicalizeBindings": _pass("Normalize"),
    "CombineParallelMatmul": _pass("MergeParallel"),
    "ComputePrimValue": _else("sizes are computed where they are used"),
    "ConvertLayout": _pass("ConvertLayout", note="to blocks of channels, of the target's width"),
    "ConvertToDataflow": _pass("Normalize"),
    "DataflowUseInplaceCalls": _pass("MarkInPlace", note="with PlanMemory, which uses it"),
    "DeadCodeElimination": _pass("EliminateDeadCode", note="entries=(...) are its entry_functions"),
    "DecomposeOpsForInference": _pass("ExpandOps", "FoldBatchNorm"),
    "DecomposeOpsForTraining": _pass("ExpandOps"),
    "EliminateCommonSubexpr": _pass("EliminateCommonSubexpr"),
    "ExpandMatmulOfSum": _else("Rewrite(RewriteRule(...)) with that rule"),
    "ExpandTupleArguments": _else("a tuple costs nothing in a native call"),
    "FastMathTransform": _else("elementary functions are Unity's own, and fast"),
    "FoldBatchnormToConv2D": _pass("FoldBatchNorm"),
    "FoldConstant": _pass("FoldConstants"),
    "FuseOps": _pass("FuseOps"),
    "FuseOpsByPattern": _else("unity.compile(model, resolve=...), whose engines take regions"),
    "FuseTIR": _pass("FuseTir"),
    "FuseTransposeMatmul": _pass("SimplifyOps", note="transposes of operands; FuseOps does others"),
    "Gradient": _else("training is not implemented"),
    "InlinePrivateFunctions": _pass("InlineFunctions"),
    "IPCAllReduceRewrite": _else("programs run on one CPU"),
    "KillAfterLastUse": _pass("PlanMemory"),
    "LambdaLift": _pass("InlineFunctions", note="the others are called as closures"),
    "LazyGetInput": _else("weights in files are mapped, and read when they are used"),
    "LazySetOutput": _else("results are given together"),
    "LazyTransformParams": _else("weights in files are mapped, and read when they are used"),
    "LegalizeOps": _pass("LegalizeOps"),
    "LiftTransformParams": _pass("LiftTransformParams"),
    "LowerAllocTensor": _pass("LowerCalls"),
    "LowerGPUIPCAllocStorage": _else("programs run on one CPU"),
    "LowerRuntimeBuiltin": _else("behind the pipeline: codegen/vm"),
    "MergeCompositeFunctions": _pass("Resolve"),
    "MetaScheduleApplyDatabase": _pass("ScheduleByRecord"),
    "MetaScheduleTuneIRMod": _else("unity.tune(model)"),
    "MetaScheduleTuneTIR": _else("unity.tune(model)"),
    "Normalize": _pass("Normalize"),
    "NormalizeGlobalVar": _else("a function's name is its key in the module"),
    "OptimizeLayoutTransform": _pass("SimplifyOps"),
    "RealizeVDevice": _else("programs run on one CPU"),
    "RemovePurityChecking": _else("purity costs nothing at run time"),
    "RemoveRedundantReshape": _pass("SimplifyOps"),
    "RemoveUnusedOutputs": _pass("RemoveUnusedOutputs"),
    "RemoveUnusedParameters": _pass("RemoveUnusedParameters"),
    "ReorderPermuteDimsAfterConcat": _else("Rewrite(RewriteRule(...)) with that rule"),
    "ReorderTakeAfterMatmul": _else("Rewrite(RewriteRule(...)) with that rule"),
    "RewriteCUDAGraph": _else("programs run on one CPU"),
    "RewriteDataflowReshape": _pass("LowerCalls", note="reshapes copy nothing"),
    "RunCodegen": _pass("Resolve", "LowerLibraryCalls"),
    "SpecializePrimFuncBasedOnCallSite": _else("kernels are made for their calls"),
    "SplitCallTIRByPattern": _else(
        "unity.compile(model, resolve=...) chooses libraries' functions"
    ),
    "SplitLayoutRewritePreproc": _pass("PackWeights"),
    "StaticPlanBlockMemory": _pass("PlanMemory"),
    "ToMixedPrecision": _pass("ConvertPrecision", note='by unity.compile(model, precision="f16")'),
    "ToNonDataflow": _else("dataflow blocks cost nothing"),
    "TopologicalSort": _else("bindings keep the order in which they are written"),
    "UpdateParamType": _else("give inputs the types wanted where the function is made"),
    "UpdateVDevice": _else("programs run on one CPU"),
    "VMBuiltinLower": _else("behind the pipeline: codegen/vm"),
    "VMShapeLower": _else("behind the pipeline: codegen/vm"),
}
"""Relax's passes and what they are here."""


def home_of(name: str) -> str | None:
    """The package that a pass is imported from; None if there is no such pass."""
    for package in _PACKAGES:
        held = import_module(package)
        if name in getattr(held, "__all__", vars(held)):
            return package
    return None


def finder(package: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a package of passes, which tells of names of passes that it lacks."""

    def find(name: str) -> object:
        if name[:1].isupper():
            _tell(package, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def _tell(package: str, name: str) -> None:
    """Say where a pass is or what does the same.

    An `AttributeError` would lose the words in ``from unity.transform import FoldConstant``.
    """
    home = home_of(name)
    if home is not None:
        raise UnityError(f"{package} has no {name}", hint=f"from {home} import {name}")
    here = RELAX.get(name)
    if here is None:
        return
    imports = [f"from {home_of(p)} import {p}" for p in here.passes]
    said = f"is called {' and '.join(here.passes)} here" if imports else "is no pass here"
    hint = "; ".join([*imports, *([here.note] if here.note else [])])
    raise UnityError(f"{package} has no {name}: Relax's pass of this name {said}", hint=hint)
