"""Compile: what `unity.compile` takes and gives, and where executables are found again.

`compile` looks for the model among the executables that were kept (`unity.executable_cache`). If
there is none, `unity.compilation` runs a pipeline of passes over it, compiles its kernels to
machine code, turns the graph functions into bytecode and native code, and puts it all together as
an `Executable`; all of that is imported only then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unity.annotated import DECISIONS, RECORDS, Kind
from unity.arguments import public
from unity.codegen.llvm.cache import default_folder
from unity.collection import no_cycle_collection
from unity.errors import UnityError
from unity.executable_cache import Wanted
from unity.importing import Model, load
from unity.ir.dims import Dynamic
from unity.machine.target import Target
from unity.options import Caches, Precision, WeightBits
from unity.runtime.executable import Executable

if TYPE_CHECKING:
    from unity.transform import Instrument, Pipeline
    from unity.transform.graph.resolve import ResolveOption
    from unity.transform.rules.decisions import Decisions
    from unity.tuning.records import Records

__all__ = ["Model", "compile", "load"]


def _is_pipeline(value: object) -> bool:
    if value is None:
        return True
    from unity.transform import Pipeline  # all passes: who has one has imported them

    return isinstance(value, Pipeline)


_KINDS = {
    "Decisions": DECISIONS,
    "Records": RECORDS,
    "Pipeline | None": Kind("a Pipeline or None", _is_pipeline),
}
_HINTS = {"a Pipeline or None": 'start from unity.pipeline("cpu"); target= names a backend'}


@partial(public, kinds=_KINDS, hints=_HINTS)
@no_cycle_collection()
def compile(  # noqa: A001
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
    trace: Path | str | None = None,
    cache: Path | str | None = "default",
) -> Executable:
    """Compile a module or a model.

    Args:
        model: What to compile.
        target: The name of a backend (``"cpu"``; packages add others), which means the machine
            that is there; or another machine, described by its features as LLVM names them:
            ``unity.Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx", "avx2", "fma"),
            vector_bits=256)``. What is for another machine than this one can be read (`ir`, `llvm`,
            `asm`), saved and exported, and not called.
        dynamic: Dims of inputs to be changed before compiling: ``{"x": {0: "n"}}`` makes the first
            axis of `x` a symbol, ``{"x": {0: 8}}`` makes it 8. Models are imported with these dims,
            so what can't be imported with sizes unknown can be once they are fixed.
        caches: Which outputs are caches, ``present = concat(past, new)``, and the inputs that they
            continue: ``{"present": "past"}``, or True for all. They are then written in place;
            `Executable.session` holds them from call to call.
        pipeline: The passes to run; the target's own if not given.
        check: Whether to compare the result with the interpreter on generated inputs; if it
            differs, the error names the pass that is to blame.
        check_bounds: Whether every access of a kernel asserts at run time that it lies within its
            buffer, for kernels written by hand; every gather and scatter that its indices are in
            range, and every division of integers that its divisor is not 0. Else such indices are
            clamped (gather) or left out (scatter), and such quotients and remainders are 0, where
            onnxruntime gives an error. What is certain to leave a buffer is refused in any case.
        threads: How many threads kernels may use; as many as there are cpus if not given.
        precision: ``"bf16"`` or ``"f16"``: matrix products and convolutions round their operands to
            that type and sum in float32 (in f16 not convolutions that are laid out in blocks of
            channels); inputs and outputs stay what they are.
        weights: ``"int4"`` or ``"int8"``: large constant matrices of products are rounded to
            integers of so many bits, with a scale and a zero point for each block of 32 rows
            of a column (`QuantizeWeights`). Products of few rows, which wait for their weights, are
            faster; results differ as an error of a half step of each weight makes them.
        winograd: Whether convolutions may be computed by Winograd's tiles, as they are where
            that is estimated faster: rounding errors are then relative to the largest pixel that a
            tile of up to 8x8 sees (a pixel of 1e6 shifts its neighbours by about 1), and a NaN or
            an infinity spreads over the tile. False: each output sees its own pixels only.
        resolve: What call sites are resolved to: ``"tir"`` (our kernels, the default), ``"static"``
            (by estimate), ``"measure"`` (the fastest on this machine), an implementation
            (``"library:openblas"``, ``"engine:onnxruntime"``), a function
            ``choose(site, candidates)``, or overrides: ``{"main/conv1": "engine:openvino"}``.
            `Executable.explain` tells what was chosen and why.
        sizes: With ``"measure"``, what symbols are while measuring: ``{"n": 128}``, or several
            values each, ``{"n": (16, 128)}``, whose times are added up. A guess if not given.
        decisions: Those of default schedules that are to be others, by name, for the name of a
            block: ``{"softmax": {"vectors": 1}}``. `Executable.rules` tells which there are, and
            what each may be.
        db: What `unity.tune` found out, the path of its file or `unity.tuning.records.Records`:
            kernels that were tuned for this machine are laid out by their records, of several sizes
            each near its own. A record that does not apply any more is told of and done without,
            and so are those of the program for other numbers of threads alone.
        instruments: Watch the passes: timing, printing, verification.
        trace: A folder to write the program after each pass to, with a page of the differences.
        cache: The folder of compiled object code, None for no cache.

    What an engine can't compile of the program is left to us with a warning (the logger ``unity``),
    unless it was asked for at that very call site. A library or an engine that can do nothing is
    left out where it was chosen by estimate; one that was asked for by name is an error.

    Raises:
        UnityError: The module is wrong, the target can't compute in the precision, or with `check`
            the numbers differ.
        InternalError: Something of Unity's own broke; the message names the pass.
        UnsupportedError: It needs what Unity does not implement; everything is listed.
    """
    _check_options(trace, cache)
    folder = default_folder() if cache == "default" else cache
    store = None if folder is None else Path(folder)

    def compiled() -> Executable:
        from unity import compilation  # the compiler, which what was kept does without

        return compilation.compiled(
            model, target, dynamic=dynamic, pipeline=pipeline, check=check, threads=threads,
            check_bounds=check_bounds, caches=caches, precision=precision, weights=weights,
            winograd=winograd, resolve=resolve, sizes=sizes, decisions=decisions, db=db,
            instruments=instruments, trace=None if trace is None else Path(trace), store=store,
        )  # fmt: skip

    others = (pipeline, resolve, sizes, trace)
    if check or instruments or store is None or any(o is not None for o in others):
        return compiled()
    asked = {
        "dynamic": dynamic, "check_bounds": check_bounds, "caches": caches, "threads": threads,
        "precision": precision, "weights": weights, "winograd": winograd, "decisions": decisions,
        "db": Path(db) if isinstance(db, str) else db,
    }  # fmt: skip
    wanted = Wanted.of(model, target, threads, asked, store)
    if wanted is None:
        return compiled()
    return wanted.found(compiled) or wanted.made(compiled)


def _check_options(trace: Path | str | None, cache: Path | str | None) -> None:
    """Refuse options that are something else.

    Raises:
        UnityError: The folder of the trace is a file, or that of the cache has no name.
    """
    if cache == "":
        raise UnityError("cache=''", hint='a folder, "default" for the user\'s own, None for none')
    if trace is not None and Path(trace).exists() and not Path(trace).is_dir():
        raise UnityError(f"trace={str(trace)!r} is a file", hint="give a folder, new or not")
