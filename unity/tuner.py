"""Tune: find schedules for a program's kernels that are faster on this machine than the rules' own.

`tune` searches and keeps what it finds in a file; ``unity.compile(model, db=file)`` uses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from logging import getLogger
from pathlib import Path

from unity.arguments import public
from unity.codegen.llvm.cache import default_folder
from unity.compilation import forms_by_record, has_forms, main_name, measured_program, prepared
from unity.compiler import Model, compile  # noqa: A004
from unity.errors import UnityError
from unity.ir.dims import Dynamic
from unity.ir.graph import Function
from unity.ir.visit import type_symbols
from unity.machine.target import Target
from unity.runtime.artifact.match import check_target
from unity.runtime.executable import Executable
from unity.transform import Pipeline, Precision
from unity.tuning.asked import (
    check_called,
    check_files,
    check_limits,
    check_measurable,
    check_spaces,
    check_strategy,
)
from unity.tuning.budget import Budget
from unity.tuning.cost import CostModel, PriorModel, cost_model
from unity.tuning.fleet import DEVICE, FleetRunner
from unity.tuning.forms import FormSearch
from unity.tuning.in_program import Build, compared, saved, settle
from unity.tuning.records import Best, Records, joined
from unity.tuning.report import KernelReport, TuningReport
from unity.tuning.runs import RunsInChild
from unity.tuning.search import Search
from unity.tuning.session import Session, Watch
from unity.tuning.spaces import SpaceProgram
from unity.tuning.steps import COMPILING, FASTEST, FORMS, TRIALS, WHOLE, Steps
from unity.tuning.tasks import Task, tasks_of
from unity.tuning.timing import assignments, completed, inputs_for, sizes_for
from unity.tuning.workers import Measurer, Program
from unity.tuning.workers.folder import SessionFolder
from unity.tuning.workers.machine_key import key_of_target

__all__ = ["tune"]
log = getLogger("unity")


@public
def tune(
    model: Model,
    target: str | Target = "cpu",
    *,
    db: Path | str | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    dynamic: Dynamic | None = None,
    threads: int | None = None,
    precision: Precision = "f32",
    pipeline: Pipeline | None = None,
    kernels: Sequence[str] = (),
    spaces: Sequence[Callable[..., None]] = (),
    strategy: str = "evolution",
    learn: bool = True,
    rules: bool = True,
    forms: bool = True,
    seed: int = 0,
    scheduler: str | None = None,
    device: str = DEVICE,
    report: Path | str | None = None,
    watch: Callable[..., None] | None = None,
    steps: Callable[..., None] | None = None,
) -> TuningReport:
    """Search schedules for the kernels of a program by measuring them on this machine.

    Every schedule is compiled and run in a child process of its own, compared with what the
    default kernel gives, and timed by turns with it, before other processes where the system allows
    it (at real-time priority: root, or a limit of ``rtprio``). What was measured is in the file
    before the next is: Ctrl-C ends the search and keeps all; the next call goes on from there. One
    that is killed loses what it was measuring; its children end with it (on Linux at once), and the
    next one on the machine removes its temporary files.

    What is faster alone may be slower where other kernels have the caches. So the fastest, and what
    earlier sessions found, are measured at the end within the program, by turns with its own
    kernels; if the program as a whole is not faster by what wins there, none of it is used. (On
    other machines, of programs that call Python, and when the search was stopped, the fastest are
    measured alone once more, for longer.)

    Args:
        model: What to tune, as `unity.compile` takes it.
        target: Likewise; it must be this machine.
        db: The file of records, which is made if there is none and added to; kept in memory only
            if not given. ``unity.compile(model, db=...)`` uses it.
        trials: How many candidates are measured at most; with neither this nor `seconds` given, the
            search ends when nothing is gained any more.
        seconds: How long it may take, besides compiling the program as it is by default: about, as
            what is running when the time is over is waited for (compiling a candidate takes at
            most half a minute, one that hangs ten seconds). What there is no time left to confirm
            at the end is not used, and is what the next session begins with. In less than 8 s for
            each kernel only what rules may decide is searched, and `spaces`.
        sizes: What unknown sizes are while measuring: ``{"n": 128}``, or several values each,
            ``{"n": (16, 128)}``; a guess if not given. A kernel that is tuned for several has
            versions, of which sizes choose at run time.
        dynamic: Dims of inputs to be changed before, as for `unity.compile`.
        threads: How many threads kernels use, as for `unity.compile`: records are for that number.
        precision: Likewise.
        pipeline: Likewise.
        kernels: Names of those to be tuned; all if there are none.
        spaces: Functions that take steps on a `Schedule` and leave choices to ``sample_*``: each is
            searched where it is not refused, beside our own spaces.
            Records tell them by their names.
        strategy: ``"evolution"``, ``"annealing"`` or ``"random"`` (chance alone: no model chooses).
        learn: Whether a model learns which candidates are worth measuring (`xgboost-cpu`; without
            it they are ranked by estimate).
        rules: Whether the decisions of the default rules are searched. Without them the search
            knows a kernel's structure and `spaces` only.
        forms: Whether other forms of convolutions and products (direct, Winograd's tiles, a matrix
            product) are measured first, in a child, and schedules searched for the kernels of
            the fastest: not where `kernels` or a `scheduler` are given, nor where the program calls
            Python. Records tell what was found of each call, and are used in any case.
        seed: Of all that is random.
        scheduler: The address of a scheduler of dask.distributed (``tcp://host:8786``), whose
            workers (`unity worker`) run what is compiled here; records are for their machine.
            Connections are encrypted as dask is configured: ``tls://host:8786``, with certificates
            in ``distributed.comm.tls``.
        device: Which workers: those with this label.
        report: A folder to write the report to, as JSON and, by matplotlib, as a chart.
        watch: Told a `unity.tuning.session.Progress` after each trial.
        steps: Told in words what is done from now on, when another step begins.

    Returns:
        What was found; printing it shows a table.

    Raises:
        UnityError: The target is another machine, there is no such kernel, size or strategy, a
            space is refused for every kernel, a file can't be written, or the program can't be
            compiled.
    """
    check_limits(trials, seconds)
    check_strategy(strategy)
    if scheduler is None and device != DEVICE:
        raise UnityError(
            f"device={device!r} are workers, and there is no scheduler",
            hint='scheduler="tcp://host:8786"',
        )
    if watch is not None:
        check_called("watch", watch, "def watch(progress: Progress) -> None")
    if steps is not None:
        check_called("steps", steps, "def steps(step: str) -> None")
    begin, budget = time.monotonic(), Budget(seconds)
    step = Steps(steps if steps is not None else _nothing)
    with ExitStack() as ending:
        fleet = None
        if scheduler is not None:
            fleet = ending.enter_context(closing(FleetRunner(scheduler, device)))
            target = fleet.target(threads)
        step.begin(COMPILING)
        with budget.compiling(counts=False):
            module, passes, context = prepared(
                model, target, dynamic=dynamic, threads=threads, precision=precision,
                pipeline=pipeline,
            )  # fmt: skip
        if fleet is None:
            check_target(context.target, "what is to be tuned")
        _check_sizes(module.graph_functions().values(), sizes or {})
        main = module.graph_functions()[main_name(module)]
        several = [completed(main, given) for given in assignments(sizes or {})]
        check_measurable(several)
        check_files(db, report)
        records = Records(db)
        folder = ending.enter_context(SessionFolder()).path
        measurer = ending.enter_context(
            Measurer(context.target, fleet, build_seconds=budget.build_seconds)
        )  # its children start while the program is compiled

        def find_tasks(*, again: bool = False) -> list[Task]:
            with budget.compiling(counts=True, kernels=again):  # what it takes is noted once
                formed = forms_by_record(passes, records, context.target)
                return _wanted(tasks_of(module, formed, context, several), kernels)

        tasks = find_tasks()
        check_spaces(spaces, tasks)
        if db is not None:
            Path(db).touch()  # there for who reads it next, whatever is found
        chosen, stopped = None, False
        if forms and fleet is None and not kernels and has_forms(passes):
            with budget.compiling(counts=False, kernels=True):
                program = measured_program(
                    passes, module, context, None, several, default_folder(), others=False
                )
                program.runs = RunsInChild(lambda: program.inputs, program.tolerance, folder)
                ending.callback(program.runs.forget)
                chosen = FormSearch(program, records, context.target)
            try:
                if _measured(chosen, budget, step):
                    tasks = find_tasks(again=True)
            except KeyboardInterrupt:
                stopped = True

        def build(db: Records) -> Executable:
            return compile(
                model, target, dynamic=dynamic, threads=threads, precision=precision,
                pipeline=pipeline, db=db,
            )  # fmt: skip

        def build_formed(db: Records) -> Executable:
            return build(joined(records.forms(key_of_target(context.target)), db))

        running = None
        if fleet is None and not stopped:
            step.begin(COMPILING)
            with budget.compiling(counts=False, kernels=True):
                running = _program(build_formed, main, several, folder)
        if running is not None:
            measurer.take_program(running)
        told: Watch = watch if watch is not None else _nothing
        step.begin(TRIALS)
        budget.anew = any(t.takes_sizes for t in tasks)
        ranking: CostModel = cost_model(seed) if learn else PriorModel()
        programs: Sequence[SpaceProgram] = spaces
        session = Session(
            tasks, records, ranking, programs, strategy, seed, rules=rules,
            tiles=not (rules and budget.is_short_for(len(tasks))),
            times=measurer.kernels(),
        )  # fmt: skip
        whole = None
        try:
            if not stopped:
                session.run(measurer, trials, budget.search_end, told, budget.last_end)
        except KeyboardInterrupt:
            stopped = True
        step.begin(FASTEST)
        budget.found(sum(s.best_ratio < 1.0 for s in session.searches), measurer.build_pace)
        try:
            if stopped or running is None:
                session.confirm(measurer, session.searches, budget.settle_end)
            else:
                alone = settle(session, measurer, budget.settle_end)
                session.confirm(measurer, alone, budget.settle_end)
            if measurer.kernels() and not stopped:
                step.begin(WHOLE)
                whole = _whole(session, chosen, build_formed, measurer, folder, budget)
        except KeyboardInterrupt:
            stopped = True
            session.set_aside(session.unconfirmed())
    found = TuningReport(
        key_of_target(context.target),
        session.trials,
        time.monotonic() - begin,
        tuple(sorted(kernel_reports(session), key=lambda k: -k.before * k.calls)),
        whole,
        tuple(session.points),
        stopped,
        session.is_short,
        () if chosen is None else tuple(chosen.report()),
        step.taken,
        None if chosen is None else chosen.short,
    )
    if report is not None:
        found.save(report)
    return found


def _measured(forms: FormSearch, budget: Budget, step: Steps) -> bool:
    """Measure forms where there is need; whether a call has another one now than by default."""
    if not forms.is_needed:
        return False
    with budget.compiling(counts=False, kernels=True):
        runs = forms.begin()
    if runs:
        step.begin(FORMS)
        forms.run(budget.forms_end)
    return bool(forms.taken)


def _whole(
    session: Session,
    chosen: FormSearch | None,
    build: Build,
    measurer: Measurer,
    folder: Path,
    budget: Budget,
) -> tuple[float, float] | None:
    """Compare the program with its default; what it is not faster with as a whole is not used.

    The default has its own forms where this session found others, which it is compared with, too.

    Args:
        session: Its kernels.
        chosen: The forms of its calls.
        build: Compiles it by records of schedules, in the forms that records have.
        measurer: Runs it.
        folder: Where files are made.
        budget: Says how long.

    Returns:
        Seconds of a call by default and tuned; None where that is not known.
    """
    formed = chosen is not None and bool(chosen.taken)
    if not session.gained and not formed:
        return None
    each = budget.compare_seconds
    if each is None:  # forms were compared when they were chosen
        if session.gained:
            session.set_aside(session.searches)
        return None
    usual = chosen.without if chosen is not None and formed else None
    whole = compared(build, session.used(), measurer, folder, each, usual)
    if whole is None or whole[1] > whole[0]:
        session.withdraw()
        if chosen is not None:
            chosen.withdraw()
    return whole


def _check_sizes(functions: Iterable[Function], sizes: Iterable[str]) -> None:
    """Refuse sizes of symbols that the program has not.

    Raises:
        UnityError: There are such.
    """
    names = {s.name for f in functions for p in f.params for s in type_symbols(p.type)}
    for name in sizes:
        if name not in names:
            raise UnityError(
                f"sizes: no symbol {name!r}",
                hint=f"the symbols are {', '.join(sorted(names)) or '(none)'}",
            )


def _program(
    build: Build, main: Function, several: Sequence[Mapping[str, int]], folder: Path
) -> Program | None:
    """The program to time kernels in; None where it can't be saved, or no arguments be made up."""
    try:
        inputs = [inputs_for(main, sizes_for(main, sizes)) for sizes in several]
        return saved(build, inputs, folder)
    except (UnityError, OSError) as error:  # no place for its weights, too
        log.info("kernels are timed alone, not within the program: %s", error)
        return None


def kernel_reports(session: Session) -> list[KernelReport]:
    """What became of each kernel: what records lay it out by now, of this session or before."""
    return [_row(search, session.used_by(search)) for search in session.searches]


def _row(search: Search, used: Best | None) -> KernelReport:
    task, before = search.task, search.default_seconds or 0.0
    return KernelReport(
        task.name,
        task.identity,
        task.sizes,
        task.count,
        search.trials,
        before,
        before if used is None else before * used.ratio,
        "" if used is None else used.space,
        "" if used is None else used.point,
        tuple(round(x, 4) for x in search.history),
    )


def _nothing(told: object) -> None:
    """Nobody is told."""


def _wanted(tasks: Sequence[Task], kernels: Sequence[str]) -> list[Task]:
    """The tasks of some names.

    Raises:
        UnityError: There is none of some name.
    """
    names = [t.name for t in tasks]
    for name in kernels:
        if name not in names:
            raise UnityError(
                f"the program has no kernel {name!r} to tune", hint=f"it has {', '.join(names)}"
            )
    return [t for t in tasks if not kernels or t.name in kernels]
