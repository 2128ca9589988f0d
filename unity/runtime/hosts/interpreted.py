"""Functions of a program that native code has the bytecode interpreter run.

They call Python, or have inside what native code does not know the size of. Arguments are copied,
since Python may keep them; results are put where native code wants them, and kept until the call
from Python ends: objects among them live by that, and where native code fails the bytecode takes
them in place of a second call (`unity.runtime.bytecode.effects.Replies`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import HANDLE, dtype
from unity.runtime import bytecode as bc
from unity.runtime.bytecode.effects import Reader, array_at, note_given
from unity.runtime.bytecode.sizes import evaluate
from unity.runtime.check import Value
from unity.runtime.failure import CalledFrom
from unity.runtime.native_info import ENDED, FAILED
from unity.runtime.vm import VM


@dataclass(frozen=True, slots=True)
class Interpreted:
    """What native code of a program calls to have a function run.

    Attributes:
        vm: Runs it.
        given: What functions gave so far, by the call from Python, of those that have not ended.
    """

    vm: VM
    given: dict[int, list[Value]] = field(default_factory=dict)

    def __call__(
        self,
        state: int,
        function: int,
        outputs: int,
        slots: int,
        count: int,
        caller: int,
        place: int,
        table: int,
    ) -> None:
        """Run a function, or take note that a call from Python ends.

        Args:
            state: Tells calls from Python apart that are under way.
            function: The function's index; `ENDED` where the call ends, and `outputs` says how.
            outputs: The table of where its results go.
            slots: The values of its symbols.
            count: How many of the call it is.
            caller: The index of the function that calls.
            place: That of the instruction there.
            table: Where what it is given is told of.

        Raises:
            Exception: What the function raises.
        """
        if function == ENDED:
            given = self.given.pop(state, [])
            if outputs == FAILED:
                note_given(given)
            return
        functions = self.vm.program.functions
        code, instruction = functions[function], functions[caller].code[place]
        assert isinstance(instruction, bc.CallFunction)
        reader = Reader(functions[caller], table, copies=True)
        args = [reader.value(argument) for argument in instruction.args]
        kept = [] if count == 1 else self.given.pop(state)
        with CalledFrom(instruction.where if code.name.startswith(bc.EXTERN) else ""):
            result = self.vm.call(function, args, self.vm.argument(function))
        known = list((ctypes.c_int64 * len(code.symbols)).from_address(slots))
        leaves = list(_leaves(code.result, result))
        places = (ctypes.c_void_p * len(leaves)).from_address(outputs)
        for (spec, value), where in zip(leaves, places, strict=True):
            _put(value, spec, where or 0, known, f"the result of {code.name}")
        self.given[state] = [*kept, result]  # only now: who raises ends the call from Python


def _put(value: Value, spec: bc.Spec, place: int, slots: Sequence[int], what: str) -> None:
    """Put a result where native code wants it.

    Raises:
        UnityError: It is a tensor, and not of the shape that the program says.
    """
    match spec:
        case bc.TensorSpec(str(name), tuple(shape)):
            dims = tuple(evaluate(size, slots) for size in shape)
            if not isinstance(value, np.ndarray) or value.shape != dims:
                got = value.shape if isinstance(value, np.ndarray) else value
                raise UnityError(f"{what}: expected a tensor of {dims}, got {got}")
            array_at(place, dims, dtype(name).numpy)[...] = value
        case bc.ScalarSpec(name):
            array_at(place, (), dtype(name).numpy)[()] = value
        case _:
            array_at(place, (), HANDLE.numpy)[()] = id(value)


def _leaves(spec: bc.Spec, value: Value) -> Iterator[tuple[bc.Spec, Value]]:
    """What a result is made of; an object may be a tuple itself."""
    if isinstance(spec, bc.TupleSpec):
        assert isinstance(value, tuple)
        for field, part in zip(spec.fields, value, strict=True):
            yield from _leaves(field, part)
    else:
        yield spec, value
