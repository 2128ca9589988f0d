"""Relay's virtual machine under its names; programs run as they always do.

Inputs of declared types (lists, trees) are `ADT` objects, as in TVM, or what `unity.load` takes for
them. How far they go is part of a program: one is compiled for each form that comes.
"""

from __future__ import annotations

from typing import Any

from unity.errors import UnityError

from .building import Library, Params, called, when_called
from .declared.by_form import ByForm
from .declared.container import ADT
from .graph_executor import BenchmarkResult, timed
from .nd import Device

__all__ = ["ADT", "Executable", "VirtualMachine", "compile"]


class Executable:
    """What `compile` gives.

    Attributes:
        program: The compiled model, or one that is compiled for each form of its inputs.
    """

    def __init__(self, program: Library | ByForm) -> None:
        self.program = program

    @property
    def lib(self) -> Library:
        """The compiled model.

        Raises:
            UnityError: It is compiled when it is called.
        """
        if isinstance(self.program, ByForm):
            raise UnityError(
                "the model takes lists or trees, and is compiled for each form that it is called "
                "with: no one program is to be saved",
                hint="unity.compile(unity.load(path, examples=...)).save(...) saves one form's",
            )
        return self.program

    def save(self) -> tuple[bytes, Library]:
        """Bytecode, of which there is none beside the library, and the library."""
        return b"", self.lib

    @staticmethod
    def load_exec(bytecode: bytes, lib: Library) -> Executable:
        """What was saved: the library that `tvm.runtime.load_module` found."""
        return Executable(lib)


def compile(  # noqa: A001
    mod: object,
    target: object = None,
    target_host: object = None,
    params: Params | None = None,
) -> Executable:
    """Compile a model, sizes that only data tell included."""
    return Executable(when_called(mod, target, params or {}))


class VirtualMachine:
    """A compiled model, called with all its inputs."""

    def __init__(self, exe: Executable | Library, device: Device | None = None, *_: object) -> None:
        self._program = exe if isinstance(exe, Library) else exe.program
        self._args: tuple[object, ...] = ()
        self._named: dict[str, object] = {}
        self._result: object = None

    def set_input(self, func_name: str, *args: object, **named: object) -> None:
        """Set the inputs of the entry."""
        self._args, self._named = args, named

    def run(self, *args: object, **named: object) -> Any:
        """Compute its outputs: an array, a list of a tuple's, an `ADT` of a declared type."""
        if args or named:
            self.set_input("main", *args, **named)
        self._result = called(self._program, self._args, self._named)
        return self._result

    def invoke(self, func_name: str, *args: object, **named: object) -> Any:
        """Compute the outputs of a function, which is the entry."""
        return self.run(*args, **named)

    def invoke_stateful(self, func_name: str, *args: object, **named: object) -> None:
        """Compute them, for `get_outputs`."""
        self.run(*args, **named)

    def get_outputs(self) -> list[Any]:
        """The outputs of the last run."""
        return self._result if isinstance(self._result, list) else [self._result]

    def benchmark(
        self,
        device: Device | None = None,
        *args: object,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        end_to_end: bool = False,
        **named: object,
    ) -> BenchmarkResult:
        """Time runs."""
        self.run(*args, **named)
        return timed(self.run, number, repeat, min_repeat_ms or 0)
