"""The compiled result: a program, its kernels' code and its constants, ready to be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy.typing as npt

from unity import notebook
from unity.annotated import DECISIONS
from unity.arguments import public, public_class
from unity.errors import UnityError, trim_frames
from unity.ir.dtype import Array, dtype
from unity.machine.target import Target
from unity.runtime.artifact.naming import path_of
from unity.runtime.artifact.write import write_image
from unity.runtime.bytecode import (
    AllocArena,
    AllocTensor,
    CallKernel,
    Copy,
    Fill,
    FunctionCode,
    Program,
    SymbolInfo,
    Update,
)
from unity.runtime.bytecode.sizes import evaluate, product
from unity.runtime.call import PythonCall
from unity.runtime.explanation import Explanation
from unity.runtime.host_forms import HostCall
from unity.runtime.image import Image
from unity.runtime.kernel_timer import KernelTimer
from unity.runtime.listings import Changes, Listings
from unity.runtime.named_call import as_result, named_call, output_name
from unity.runtime.native import Linked, NativeCode
from unity.runtime.session import Session
from unity.runtime.signature import function_text
from unity.runtime.threads import Threads
from unity.runtime.timing import Benchmark, Profile, benchmark, profile
from unity.runtime.vm import VM, Event, Kernel
from unity.version import VERSION

if TYPE_CHECKING:  # what only the compiler has, told to type checkers alone
    from unity.ir.stmt import PrimFunc
    from unity.transform.rules.decisions import AppliedRule
    from unity.transform.schedule.schedule import Schedule

PROFILED_CALLS = 20


@dataclass(frozen=True, slots=True)
class Parts:
    """What an executable is made of.

    Attributes:
        image: The program, its data and its code.
        kernels: One callable for each kernel of the program.
        native: Native code, where there is any.
        listings: Texts; None for an executable that was loaded from an artifact.
        library: The linked machine code, kept alive by this.
        threads: How many it uses; None where the code knows no threads.
        unfit: Why the code can't run on this machine; None if it can. What can't is not linked: it
            can be read, saved and exported.
    """

    image: Image
    kernels: Sequence[Kernel]
    native: NativeCode | None = None
    listings: Listings | None = None
    library: Linked | None = None
    threads: Threads | None = None
    unfit: UnityError | None = None


@partial(public_class, kinds={"Changes": DECISIONS})
class Executable:
    """A compiled module; call it with arrays.

    ``exe(x)`` calls the function ``main`` (or the first that no other calls), ``exe["f"](x)``
    another. One result is an array, several are a tuple. Results come in the kind of array that was
    given: numpy for numpy, torch for torch, and so on. May be called from several threads at once.

    It never changes (but for `threads`), so ``copy.copy`` and ``copy.deepcopy`` give it itself. It
    is not pickled: `save` writes it to a file, from which another process loads it.
    """

    def __init__(self, parts: Parts) -> None:
        image, program = parts.image, parts.image.program
        self._parts = parts
        self._vm = VM(program, parts.kernels, image.constants, image.hosts)
        public = [f for f in program.functions if "." not in f.name]  # the others are closures
        self._calls = {f.name: self._callable(f) for f in public}
        self._main_name = "main" if "main" in self._calls or not public else public[0].name
        self._main = self._calls.get(self._main_name, _nothing)
        self._named = {f.name: named_call(self._calls[f.name], f) for f in public}

    def _callable(self, code: FunctionCode) -> Callable[..., object]:
        if self._parts.unfit is not None:
            return self._refuse
        slow = PythonCall(self._vm, code, self._parts.native)
        if self._parts.native is not None:
            slow.builtin = self._parts.native.builtin(code.name, slow)
        plain = slow if slow.builtin is None else slow.builtin
        several = len(code.output_names) != 1
        return HostCall(code.forms, slow, plain, several) if code.forms else plain

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Say why nothing can be called here."""
        why = self._parts.unfit
        assert why is not None
        raise UnityError(
            why.message,
            hint='compile for target="cpu" to call it here; this one can be read (ir, llvm, asm), '
            "saved and exported",
        )

    def _bytecode(
        self, watch: Callable[[Event], None] | None, kernels: Sequence[Kernel] | None = None
    ) -> PythonCall:
        """The main function as the bytecode interpreter calls it, each instruction shown, if asked.

        Raises:
            UnityError: The kernels are for another machine.
        """
        if self._parts.unfit is not None:
            self._refuse()
        run = self._parts.kernels if kernels is None else kernels
        vm = replace(self._vm, kernels=run, trace=watch)
        return PythonCall(vm, self._code(self._main_name))

    def __call__(self, *args: object, **named: object) -> Any:
        """Call the main function with arrays, by position or name.

        Raises:
            UnityError: An argument doesn't fit; the message names it.
        """
        try:
            return self._main(*args, **named)
        except UnityError as error:
            trim_frames(error, Executable.__call__.__code__)
            raise

    @public
    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function by name.

        Raises:
            UnityError: There is none.
        """
        self._code(name)
        return self._calls[name]

    def __copy__(self) -> Executable:
        """Itself: there is nothing in it that a copy could change on its own."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Executable:
        """Itself."""
        return self

    @public
    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: it holds machine code that is loaded in this process.

        Raises:
            UnityError: Always.
        """
        raise UnityError(
            "an executable can't be pickled: it is machine code loaded in this process",
            hint="exe.save(path) writes it, unity.load(path) reads it in the other process",
        )

    @property
    def threads(self) -> int:
        """How many threads a call may use, the caller included; may be set at any time."""
        if self._parts.unfit is not None:
            return self._parts.image.target.threads
        return 1 if self._parts.threads is None else self._parts.threads.count

    @threads.setter
    def threads(self, count: int) -> None:
        if self._parts.unfit is not None:
            self._refuse()
        if self._parts.threads is not None:
            self._parts.threads.count = count

    @partial(public, late=True)
    def run(
        self,
        inputs: Mapping[str, object],
        function: str | None = None,
        *,
        threads: int | None = None,
    ) -> dict[str, npt.NDArray[Any]]:
        """Call a function with named arrays; its results by name.

        An imported model's inputs and outputs have the names that the model gives them. Results
        without names are called ``output0``, ``output1`` ...

        Args:
            inputs: Arrays by name.
            function: Which function, the main one if not given.
            threads: How many threads this call may use; `threads` if not given. Calls of the same
                executable that run at the same time share it.
        """
        if threads is not None:
            usual, self.threads = self.threads, threads
            try:
                return self.run(inputs, function)
            finally:
                self.threads = usual
        name = function or self._main_name
        ready = self._named.get(name)
        done = None if ready is None else ready(inputs)
        if done is not None:
            return done
        code = self._code(name)
        if not isinstance(inputs, Mapping):
            raise UnityError(
                f"run takes a dict of inputs by name, got {type(inputs).__name__}",
                hint="call the executable itself to give inputs by position",
            )
        own = dict(zip(code.input_names, (q.name for q in code.params), strict=False))
        result = self[name](**{own.get(k, k): v for k, v in inputs.items()})
        results = result if isinstance(result, tuple) else (result,)
        return {output_name(code, i): as_result(r) for i, r in enumerate(results)}

    def session(self, capacity: int = 1024, function: str | None = None) -> Session:
        """Caches to go from call to call, for a model compiled with ``caches=``.

        ``session.run(inputs)`` then takes and gives everything but the caches. A prompt is one run
        of many tokens, and each token after it a run of one.

        Args:
            capacity: How many rows the caches can hold.
            function: Which function, the main one if not given.

        Raises:
            UnityError: The function has no caches.
        """
        name = function or self._main_name
        return Session(self[name], self._code(name), capacity)

    def benchmark(
        self, *args: object, repeat: int = 30, warmup: int = 3, **named: object
    ) -> Benchmark:
        """Time calls of the main function."""
        return benchmark(lambda: self(*args, **named), repeat, warmup)

    def profile(self, *args: object, **named: object) -> Profile:
        """What each kernel of the main function takes, in one call.

        Kernels' times are their machine code's, called again and again on copies of what they are
        given. What else a function does that is bytecode (`native` says so) is timed as the
        bytecode interpreter runs it; of native code that is copies alone. The fastest of some
        whole calls stands beside the sum.
        """
        how = self.native().get(self._main_name, "")
        timer, events = KernelTimer(), list[Event]()

        def watch(event: Event) -> None:
            match event.instruction:
                case CallKernel():
                    events.append(replace(event, seconds=timer.seconds))
                case Copy() | Fill() | Update():
                    events.append(event)
                case _ if how != "native":
                    events.append(event)
                case _:
                    pass

        self._bytecode(watch, timer.watching(self._parts.kernels))(*args, **named)
        whole = benchmark(lambda: self(*args, **named), PROFILED_CALLS, 3).min
        return profile(events, self.kernels, f"kernels as native code; the function: {how}", whole)

    def trace(self, watch: Callable[[Event], None], *args: object, **named: object) -> Any:
        """Call the main function in the bytecode interpreter, showing each instruction that ran."""
        return self._bytecode(watch)(*args, **named)

    @property
    def kernel_calls(self) -> tuple[Kernel, ...]:
        """The kernels as functions of their arrays and sizes, in the order of `kernels`."""
        return tuple(self._parts.kernels)

    def calling(self, kernels: Sequence[Kernel]) -> Callable[..., Any]:
        """The main function in the bytecode interpreter, calling other functions as its kernels.

        Args:
            kernels: As many as `kernel_calls`, each of the same arrays and sizes.
        """
        return self._bytecode(None, kernels)

    @property
    def target(self) -> Target:
        """The machine that it was compiled for."""
        return self._parts.image.target

    @property
    def program(self) -> Program:
        """The bytecode."""
        return self._parts.image.program

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that can be called."""
        return tuple(self._calls)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(k.name for k in self.program.kernels)

    @property
    def constants(self) -> tuple[Array, ...]:
        """The constants that the program reads: weights, tables."""
        return tuple(self._parts.image.constants)

    @property
    def symbols(self) -> dict[str, SymbolInfo]:
        """The main function's symbols by name."""
        return {s.name: s for s in self._code(self._main_name).symbols}

    @property
    def signature(self) -> str:
        """The main function's parameters and result, as text."""
        return function_text(self._code(self._main_name))

    def native(self) -> dict[str, str]:
        """For each function ``native``, or why it runs as bytecode."""
        native, unfit = self._parts.native, self._parts.unfit
        if unfit is not None:
            return dict.fromkeys(self._calls, f"not run here: {unfit.message}")
        if native is None:
            return dict.fromkeys(self._calls, "bytecode: native code is off or not supported here")
        why = {name: f"bytecode: {reason}" for name, reason in native.info.reasons}
        return {name: why.get(name, "native") for name in self._calls}

    def explain(self) -> Explanation:
        """What each call site was resolved to and why, as a table, and how each function runs."""
        found = Explanation.stored(self._parts.image.explanation)
        return replace(found, functions=tuple(self.native().items()))

    def save(self, path: str | PathLike[str], *, key: bytes | None = None) -> None:
        """Write the executable to a file, which `unity.load` and `unity.runtime.load` read.

        The file holds machine code, bytecode and constants, but no source texts: `ir`, `llvm` and
        `asm` are not to be had of what is loaded. It is for machines of this kind alone. Python
        functions that it calls are named in it, not stored: who loads it names them again.

        Args:
            path: The file, ``NAME.unity``; replaced, if there is one, when all is written.
            key: A secret of 16 bytes or more. Who has it, too, sees by ``load(path, key=...)`` that
                the file is as it was written (BLAKE2b of the whole file with the key).

        Raises:
            UnityError: It calls a Python function without a name, the file has the name of a model,
                or it can't be written.
        """
        self._write(path_of(path), key, durable=True)

    def store(self, path: Path) -> None:
        """Write it as `save` does to a cache: it is not waited for that it is on the disk."""
        self._write(path, None, durable=False)

    def _write(self, path: Path, key: bytes | None, *, durable: bool) -> None:
        told = self.signature if self._calls else "(no functions)"
        image = self._parts.image
        write_image(image, path, told, self.threads, VERSION, key, durable=durable)

    def export_library(self, path: str | PathLike[str]) -> Path:
        """Write a shared library for C, with a header; it needs nothing but the C library.

        Functions take and fill tensors of DLPack; ``libmodel.so`` has ``model_main``, which the
        header ``model.h`` beside it explains. Whoever loads it must run on a machine of this kind.

        Args:
            path: The library, ``libNAME.so``.

        Returns:
            The header.

        Raises:
            UnsupportedError: The program does what C can't be given: libraries, engines, Python
                functions, sizes that depend on data.
            UnityError: There is no linker of the system, or it fails.
        """
        return self._listings(None).export_library(self._parts.image, path_of(path), self.threads)

    def peak_bytes(self, function: str | None = None, **sizes: int) -> int:
        """Memory a call takes besides inputs and constants: the arena and fresh tensors.

        Args:
            function: Which function; main by default.
            sizes: A value for every symbol.
        """
        code = self._code(function or self._main_name)
        missing = [s.name for s in code.symbols if s.name not in sizes]
        if missing:
            raise UnityError(f"peak_bytes needs values for {', '.join(missing)}")
        slots = [sizes[s.name] for s in code.symbols]
        total = 0
        for i in code.code:
            match i:
                case AllocArena(_, size):
                    total += evaluate(size, slots)
                case AllocTensor(_, shape, name):
                    total += evaluate(product(shape), slots) * dtype(name).bytes
                case _:
                    pass
        return total

    def ir(self, kernel: str | None = None) -> str:
        """The lowered module, or one kernel of it, in the language."""
        return self._listings(kernel).ir(kernel)

    def llvm(self, kernel: str | None = None) -> str:
        """The LLVM IR of all kernels and native functions, or of one kernel."""
        return self._listings(kernel).llvm(kernel)

    def asm(self, kernel: str | None = None) -> str:
        """The assembly of all kernels, or of one."""
        return self._listings(kernel).asm(kernel)

    def kernel(self, kernel: str) -> PrimFunc:
        """One of `kernels` as TensorIR, before it is laid out: what its schedule starts from.

        Raises:
            UnityError: There is none of that name, an engine computes it, the executable was loaded
                from a file, or its pipeline lays nothing out by default.
        """
        return self._of_ours(kernel).kernel(kernel)

    def schedule(self, kernel: str, decisions: Changes | None = None) -> Schedule:
        """What the default rules did to one of `kernels`, as a `Schedule`: to be read and changed.

        It is made anew, on ``exe.kernel(name)`` for the machine that this was compiled for, also
        where the kernel's code came from the cache.

        Args:
            kernel: Its name.
            decisions: Others than were taken: `rules` tells which there are.

        Raises:
            UnityError: As `kernel` does; and if somebody else laid it out (a user, a rule of the
                target's own), if it is a call of a library, or if a decision is not legal.
        """
        return self._of_ours(kernel).schedule(kernel, decisions)

    def rules(self, kernel: str, decisions: Changes | None = None) -> tuple[AppliedRule, ...]:
        """Which default rule took which blocks of a kernel, its decisions, and others it may take.

        Raises:
            UnityError: As `schedule` does.
        """
        return self._of_ours(kernel).rules(kernel, decisions)

    def _of_ours(self, kernel: str) -> Listings:
        listings = self._listings(kernel)
        engine = next(k.engine for k in self.program.kernels if k.name == kernel)
        if engine:
            raise UnityError(
                f"{kernel!r} is computed by the engine {engine}, not by a kernel of ours",
                hint='resolve="tir" compiles kernels of ours',
            )
        return listings

    def _listings(self, kernel: str | None) -> Listings:
        if self._parts.listings is None:
            raise UnityError(
                "this executable was loaded from a file, which holds no source texts",
                hint="compile the model again to see its kernels: TensorIR, LLVM, assembly",
            )
        if kernel is not None and kernel not in self.kernels:
            near = get_close_matches(kernel, self.kernels, 3)
            near = near or [k for k in self.kernels if kernel in k][:3]
            like = (
                f"did you mean {', '.join(near)}?"
                if near
                else "exe.kernels, or inspect --kernels, lists all"
            )
            raise UnityError(f"no kernel {kernel!r}", hint=like)
        return self._parts.listings

    def _code(self, name: str) -> FunctionCode:
        if name not in self._calls:
            known = ", ".join(self._calls) or "(none)"
            raise UnityError(f"the executable has no function {name!r}; it has {known}")
        return self.program.function(name)

    def __repr__(self) -> str:
        """A report: signatures, kernels, and how each function runs."""
        lines = [f"Executable of {len(self.kernels)} kernels"]
        for name, how in self.native().items():
            lines.append(f"  {function_text(self._code(name))}  [{how}]")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(function_text(self._code(name)), how) for name, how in self.native().items()]
        title = f"Executable of {len(self.kernels)} kernels"
        return notebook.page(notebook.table(("function", "runs as"), rows, title))


def _nothing(*_: object, **__: object) -> object:
    raise UnityError("the executable has no functions to call")
