"""From a model to an executable: the passes, the code of its kernels, bytecode, all linked.

What `unity.compile` does when it finds no executable of the model: `unity.compiler` says what its
arguments mean, and imports this only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from unity.building import with_entries
from unity.caches import with_caches
from unity.codegen.assemble import assemble
from unity.codegen.engine.failing import failing_calls
from unity.codegen.kernel_call import kernel_call
from unity.codegen.llvm.cache import default_folder
from unity.codegen.lower import lower
from unity.codegen.workers.crew import processes
from unity.collection import no_cycle_collection
from unity.dynamic import with_dynamic_dims
from unity.errors import UnityError
from unity.importing import Model, load
from unity.ir.arrays.mapped import require_unchanged
from unity.ir.dims import Dynamic
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.visit import walk_constants
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.op.check import check_types
from unity.options import Caches, Precision, WeightBits
from unity.runtime.artifact.match import check_target
from unity.runtime.executable import Executable
from unity.runtime.explanation import Explanation
from unity.runtime.image import Option
from unity.runtime.implementation import ImplementationError
from unity.runtime.trim import MUCH, trim
from unity.script import ScriptFunction, ScriptPrimFunc, set_compiler
from unity.transform import Context, Instrument, Pipeline, backend_of, schedule
from unity.transform import pipeline as default_pipeline
from unity.transform.blame import blamed
from unity.transform.check_accesses import check_accesses
from unity.transform.check_outputs import check_outputs
from unity.transform.check_temporaries import check_temporaries
from unity.transform.graph.layout.convert_layout import ConvertLayout
from unity.transform.graph.layout.convert_precision import ConvertPrecision
from unity.transform.graph.layout.convert_winograd import ConvertWinograd
from unity.transform.graph.layout.pack_weights import PackWeights
from unity.transform.graph.quantized.quantize_weights import QuantizeWeights, bits_called
from unity.transform.graph.resolve import (
    EXPLANATION,
    FORMED,
    FormByRecord,
    Policy,
    Resolve,
    ResolveOption,
    policy_of,
)
from unity.transform.graph.simplify.check_indices import CheckIndices
from unity.transform.graph.simplify.dce import references
from unity.transform.graph.simplify.normalize import Normalize
from unity.transform.instruments import DumpIR
from unity.transform.rules.by_default import ScheduleDefault
from unity.transform.rules.by_record import TUNED, ScheduleByRecord

if TYPE_CHECKING:
    from unity.transform.rules.decisions import Decisions
    from unity.tuning import MeasuredProgram
    from unity.tuning.records import Records


@no_cycle_collection()
def compiled(
    model: Model,
    target: str | Target = "cpu",
    *,
    dynamic: Dynamic | None = None,
    pipeline: Pipeline | None = None,
    check: bool = False,
    check_bounds: bool = False,
    caches: Caches = False,
    threads: int | None = None,
    precision: Precision = "f32",
    weights: WeightBits | None = None,
    winograd: bool = True,
    resolve: ResolveOption | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    decisions: Decisions | None = None,
    db: Path | str | Records | None = None,
    instruments: Sequence[Instrument] = (),
    trace: Path | None = None,
    store: Path | None = None,
) -> Executable:
    """A model compiled now.

    The arguments are those of `unity.compile`; `store` is the folder of all caches, None for none.
    """
    watching = tuple(instruments) if trace is None else (*instruments, DumpIR(trace))
    db = None if db is None else records_in(db)
    module, passes, context = prepared(
        model, target, dynamic=dynamic, threads=threads, precision=precision, pipeline=pipeline,
        winograd=winograd, caches=caches, weights=weights, check_bounds=check_bounds,
        db=db, instruments=watching,
    )  # fmt: skip
    if decisions is not None:
        passes = _deciding(passes, decisions)
    if resolve is not None or sizes:
        passes = _resolved(passes, module, resolve, sizes, context, store)
    asked: dict[str, Option] = {
        "threads": threads if isinstance(target, str) else target.threads,
        "precision": precision,
        "weights": weights,
        "winograd": winograd,
        "caches": caches is not False,
        "check_bounds": check_bounds,
    }
    executable, passes = _built(module, passes, context, store, asked)
    if db is not None:
        from unity.tuning.records.unused import tell_unused

        tell_unused(db, context)
    if check:
        from unity.checking import check_executable

        check_executable(executable, module, passes, context, precision)
    _require_files(module)
    if sum(c.nbytes for c in executable.constants) > MUCH:
        del module  # what they were read and laid out from is free now
        trim()
    return executable


def prepared(
    model: Model,
    target: str | Target,
    *,
    dynamic: Dynamic | None = None,
    threads: int | None = None,
    precision: Precision = "f32",
    pipeline: Pipeline | None = None,
    winograd: bool = True,
    caches: Caches = False,
    weights: WeightBits | None = None,
    check_bounds: bool = False,
    db: Path | str | Records | None = None,
    instruments: Sequence[Instrument] = (),
) -> tuple[IRModule, Pipeline, Context]:
    """What `compile` compiles: the module, checked, the passes, and what they are given.

    The arguments are those of `compile`.

    Raises:
        UnityError: The module or an option is wrong.
    """
    module = with_entries(_module(model, dynamic))
    _require_files(module)
    if caches is not False:
        module = with_caches(module, caches, main_name(module))
    verify(module)
    check_types(module)
    for name, func in module.prim_funcs().items():
        check_accesses(name, func)
        check_temporaries(name, func)
    check_outputs(module)
    context = Context(_target(target, threads), tuple(instruments))
    if weights is not None:
        module = QuantizeWeights(bits_called(weights))(Normalize()(module, context), context)
    if check_bounds:
        module = CheckIndices()(module, context)
    if pipeline is not None and precision != "f32":
        raise UnityError(
            f"a pipeline and precision={precision!r}",
            hint=f"start from unity.transform.pipeline(precision={precision!r})",
        )
    if pipeline is not None and not winograd:
        raise UnityError(
            "a pipeline and winograd=False", hint="start from unity.pipeline(winograd=False)"
        )
    passes = pipeline or default_pipeline(context.target.kind, precision, winograd=winograd)
    if db is not None:
        passes = _tuned(passes, records_in(db), context)
    return module, passes, context


def _deciding(passes: Pipeline, decisions: Decisions) -> Pipeline:
    """The pipeline with some decisions of default schedules."""
    from unity.transform.rules.decisions import over

    given = next((p for p in passes.passes if isinstance(p, ScheduleDefault)), ScheduleDefault())
    return passes.replace(ScheduleDefault, ScheduleDefault(over(given.decide, decisions)))


def records_in(db: Path | str | Records) -> Records:
    """The records that are given, or those of a file.

    Raises:
        UnityError: There is no such file, it can't be read, or what it holds are no records.
    """
    from unity.tuning.records import Records
    from unity.tuning.records.store import check_holds_records

    if isinstance(db, Records):
        return db
    if not Path(db).exists():
        raise UnityError(f"db: there is no file {str(db)!r}", hint="unity.tune(...) writes it")
    check_holds_records(Path(db))
    return Records(db, read_only=True)


def _tuned(passes: Pipeline, db: Records, context: Context) -> Pipeline:
    """The pipeline that lays kernels out as records say."""
    others = tuple(db.by_other_threads(context.target))
    passes = forms_by_record(passes, db, context.target, others)
    by_record = ScheduleByRecord(db.replays(context.target), others)
    return passes.insert_before(ScheduleDefault, by_record)


def forms_by_record(
    passes: Pipeline, db: Records, target: Target, watched: tuple[str, ...] = ()
) -> Pipeline:
    """The pipeline that computes calls in the forms that records say, where it knows forms."""
    if not has_forms(passes):
        return passes
    return passes.insert_before(Resolve, FormByRecord(db.recorded_forms(target), watched))


def has_forms(passes: Pipeline) -> bool:
    """Whether a pipeline has forms of our kernels to choose from, and all passes that make them."""
    kinds = {type(p) for p in passes.passes}
    asked = any(isinstance(p, Resolve) and p.forms for p in passes.passes)
    return asked and {ConvertLayout, ConvertWinograd, PackWeights} <= kinds


def _explained(context: Context, module: IRModule) -> str:
    """What call sites were resolved to, and what of it records said: forms, kernels' schedules."""
    explanation = context.reports.get(EXPLANATION, "")
    if not {FORMED, TUNED} & context.reports.keys():
        return explanation
    from unity.tuning.explained import with_forms, with_tuned

    told = Explanation.stored(explanation)
    if FORMED in context.reports:
        told = with_forms(told, context.reports[FORMED])
    if TUNED in context.reports:
        told = with_tuned(told, context.reports[TUNED], module)
    return told.to_json()


def _built(
    module: IRModule,
    passes: Pipeline,
    context: Context,
    store: Path | None,
    asked: Mapping[str, Option],
) -> tuple[Executable, Pipeline]:
    """The executable, and the pipeline that it came of: without what failed on the way."""
    while True:
        lowered = lower(
            module,
            passes,
            context,
            store,
            checks=bool(asked.get("check_bounds")),
            processes=processes(context.target),
        )
        try:
            lowered.kernels.unscheduled.require_decided()
            return assemble(lowered, _explained(context, module), asked), passes
        except ImplementationError as error:
            passes = _without(passes, error, lowered.module, context)
        except Exception as error:
            ours = blamed(error, "code generation", passes.passes, module, lowered.module, context)
            if ours is not None:
                raise ours from error
            raise


def _require_files(module: IRModule) -> None:
    """Refuse weights whose files were written to since they were mapped.

    Raises:
        UnityError: There are such.
    """
    functions = module.graph_functions().values()
    require_unchanged(c.data for f in functions for c in walk_constants(f))


def _resolved(
    passes: Pipeline,
    module: IRModule,
    resolve: ResolveOption | None,
    sizes: Mapping[str, int | Sequence[int]] | None,
    context: Context,
    store: Path | None,
) -> Pipeline:
    """The pipeline with call sites resolved as asked; ``"measure"`` compiles and times here."""
    policy = policy_of(resolve)
    if sizes and policy.base != "measure":
        raise UnityError("sizes without measuring", hint='they are for resolve="measure"')
    given = next((p for p in passes.passes if isinstance(p, Resolve)), Resolve())
    if policy.base != "measure":
        return passes.replace(Resolve, replace(given, policy=policy))
    from unity.tuning import Database, assignments, measured_resolution

    check_target(context.target, "what is to be measured")
    several = assignments(sizes or {})
    program = measured_program(passes, module, context, policy, several, store)
    step = measured_resolution(program, Database(store), repr(passes))
    return passes.replace(Resolve, step)


def measured_program(
    passes: Pipeline,
    module: IRModule,
    context: Context,
    policy: Policy | None,
    sizes: Sequence[Mapping[str, int]],
    store: Path | None,
    *,
    others: bool = True,
) -> MeasuredProgram:
    """A program to be compiled in several ways and timed.

    Args:
        passes: What it goes through; one is a `Resolve`.
        module: The program.
        context: For passes.
        policy: What the user says of call sites; None for what the passes have.
        sizes: What unknown sizes are while measuring, each time.
        store: The folder of caches; None for none.
        others: Whether libraries and engines may compute a part.
    """
    from unity.tuning import MeasuredProgram

    quiet = Context(context.target)
    given = next((p for p in passes.passes if isinstance(p, Resolve)), Resolve())

    def build(part: IRModule, step: Resolve) -> Executable:
        return _built(part, passes.replace(Resolve, step), quiet, store, {})[0]

    return MeasuredProgram(
        passes.until(Resolve).run(module, quiet),
        main_name(module),
        context.target,
        build,
        given,
        given.policy if policy is None else policy,
        sizes,
        narrow=any(isinstance(p, ConvertPrecision) for p in passes.passes),
        others=others,
    )


def _without(
    passes: Pipeline, error: ImplementationError, module: IRModule, context: Context
) -> Pipeline:
    """The pipeline that does without what failed: a part of the program, or all of it.

    Raises:
        UnityError: The user asked for what failed by name.
    """
    name = error.implementation
    for step in passes.passes:
        if isinstance(step, Resolve):
            sites = _failing_sites(error, module, context)
            other = step.without_at(name, sites) if sites else step.without(name, error.message)
            if other is not None:
                where = f" at {', '.join(sites)}" if sites else ""
                getLogger("unity").warning("%s is left out%s: %s", name, where, error)
                return passes.replace(Resolve, other)
    raise error


def _failing_sites(
    error: ImplementationError, module: IRModule, context: Context
) -> dict[str, str]:
    """The call sites that an engine can't have, each with the reason; none if it is the engine."""
    part = module.functions.get(error.part)
    if not isinstance(part, Function):
        return {}
    found = failing_calls(part, error.implementation.partition(":")[2], context.target)
    rows = Explanation.from_json(context.reports[EXPLANATION]).sites
    names = {r.site.rpartition("/")[2]: r.site for r in rows if r.group == error.part}
    if found is None:
        return {}
    calls = found or dict.fromkeys(names, error.message)
    return {names[var]: why for var, why in calls.items() if var in names}


def _module(model: Model, dynamic: Dynamic | None) -> IRModule:
    """The module to compile: a model is imported with the dims asked for, others get them now."""
    if isinstance(model, IRModule | ScriptFunction | ScriptPrimFunc):
        module = main_first(model if isinstance(model, IRModule) else model.module())
        return with_dynamic_dims(module, dynamic, main_name(module)) if dynamic else module
    if isinstance(model, PrimFunc):
        raise UnityError(
            "this is a kernel, not a program",
            hint='a module of it can be compiled: unity.compile(unity.IRModule({"kernel": func}))',
        )
    if not isinstance(model, str | Path) and isinstance(model, schedule.Schedule):
        raise UnityError(
            "a schedule is of one kernel, not a program",
            hint='put it back: unity.compile(module.with_({"kernel": schedule.kernel()})), or '
            'alone: unity.compile(unity.IRModule({"kernel": schedule.kernel()}))',
        )
    return load(model, dynamic=dynamic or None)


def main_first(module: IRModule) -> IRModule:
    """The same module with the function first that an executable of it calls when it is called.

    That is ``main``; where there is none, the first that no other function calls: a decorated
    function stands behind those it calls.

    >>> from unity.script import parse
    >>> module = parse('''
    ... @script.function
    ... def act(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     return R.exp(x)
    ... @script.function
    ... def forward(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     return act(x)
    ... ''')
    >>> list(main_first(module).functions)
    ['forward', 'act']
    """
    functions = module.graph_functions()
    called = {n for name, f in functions.items() for n in references(f.body) if n != name}
    roots = [name for name in functions if name not in called]
    first = "main" if "main" in functions else next(iter(roots), None)
    if first is None or first == next(iter(functions)):
        return module
    rest = {name: f for name, f in module.functions.items() if name != first}
    return replace(module, functions={first: functions[first], **rest})


def main_name(module: IRModule) -> str:
    """The function that an executable calls when it is called itself."""
    functions = list(module.graph_functions())
    return "main" if "main" in functions or not functions else functions[0]


def _target(target: str | Target, threads: int | None) -> Target:
    if threads is not None and threads < 1:
        raise UnityError(f"threads={threads}", hint="at least 1; None for all cores")
    if isinstance(target, Target):
        return target
    return backend_of(target).machine(threads)


def _call_script(module: IRModule, name: str, /) -> Callable[..., object]:
    """How a decorated function runs when it is called with arrays."""
    module = _with_public(module, name)
    if name in module.graph_functions():
        return compiled(module, store=default_folder())[name]
    target = _target("cpu", None)
    check_accesses(name, module.prim_funcs()[name])
    check_temporaries(name, module.prim_funcs()[name])
    lowered = default_pipeline(target.kind).run(module, Context(target))
    written, func = module.prim_funcs()[name], lowered.prim_funcs()[name]
    return kernel_call(name, written, func, target, default_folder())


def _with_public(module: IRModule, name: str) -> IRModule:
    """The module with a function that passes keep, as it is called from outside."""
    found = module[name]
    if not isinstance(found, Function | PrimFunc) or "private" not in found.attrs:
        return module
    return IRModule(
        {**module, name: replace(found, attrs=found.attrs.without("private"))}, module.attrs
    )


set_compiler(_call_script)
backend_of("cpu")  # the default; its libraries and engines may be named before anything is compiled
