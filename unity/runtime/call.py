"""A function of an executable as Python sees it: names sorted out, arrays of all kinds accepted.

This is the slow way. The fast one is a builtin that takes plain arrays by position and comes here
when it is given anything else, or when something is wrong and the message has to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unity.errors import UnityError, takes_inputs
from unity.ir.dtype import dtype, scalar_fault
from unity.runtime.arrays.accept import Export, accept
from unity.runtime.arrays.overlap import refuse_overlap
from unity.runtime.bytecode import (
    FunctionCode,
    ParamInfo,
    ScalarSpec,
    Spec,
    TensorSpec,
    TupleSpec,
)
from unity.runtime.bytecode.effects import Prints, Replies, take_given, take_printed
from unity.runtime.check import Value
from unity.runtime.failure import take_failure
from unity.runtime.native import NativeCode
from unity.runtime.vm import VM


@dataclass(slots=True)
class _Conversion:
    """What accepting arguments found: how to give results back, and whether anything changed."""

    export: Export | None = None
    changed: bool = False

    def value(self, value: object, spec: Spec, where: str) -> Value:
        """An argument as the VM takes it."""
        match spec:
            case TensorSpec():
                array, export = accept(value, spec.dtype, where)
                self.export = self.export or export
                self.changed = self.changed or array is not value
                return array
            case TupleSpec(fields):
                if isinstance(value, Sequence) and len(value) == len(fields):
                    self.changed = self.changed or type(value) is not tuple
                    parts = zip(value, fields, strict=True)
                    return tuple(
                        self.value(v, f, f"{where}[{i}]") for i, (v, f) in enumerate(parts)
                    )
                return value
            case ScalarSpec(name):
                number = value.item() if isinstance(value, np.number | np.bool_) else value
                if dtype(name).is_float and type(number) is int:
                    number = number if scalar_fault(dtype(name), number) else float(number)
                self.changed = self.changed or number is not value
                return number
            case _:
                return value


@dataclass(slots=True)
class PythonCall:
    """Calls one function: with native code where it fits, otherwise by the interpreter.

    Attributes:
        native: Keeps the native code alive as long as its builtin may call this.
        builtin: The function's native entry, if it has one.
    """

    vm: VM
    code: FunctionCode
    native: NativeCode | None = None
    builtin: Callable[..., object] | None = field(default=None, repr=False)

    def __call__(self, *args: object, **named: object) -> object:
        """Call it.

        Raises:
            UnityError: An argument doesn't fit; the message names it.
        """
        failed, printed, replied = take_failure(), take_printed(), take_given()
        if failed is not None:  # native code got as far as an engine: nothing may run twice
            raise failed
        given = self.ordered(args, named)
        conversion = _Conversion()
        values = [
            conversion.value(value, param.spec, _where(param))
            for param, value in zip(self.code.params, given, strict=True)
        ]
        for i in self.code.given_away:
            array = values[i]
            if isinstance(array, np.ndarray) and not array.flags.writeable:
                values[i], conversion.changed = array.copy(), True
        self._refuse_overlap(values)
        if self.builtin is not None and (conversion.changed or named):
            result = self.builtin(*values)  # comes back here, unchanged, if it can't
        else:
            vm = replace(self.vm, printer=Prints(printed)) if printed else self.vm
            if replied and self.native is not None:
                native = {f.name for f in self.native.info.functions}
                vm = replace(vm, replies=Replies(iter(replied), native))
            result = vm.run(self.code.name, values)
        return result if conversion.export is None else _exported(result, conversion.export)

    def _refuse_overlap(self, values: Sequence[Value]) -> None:
        """Refuse inputs that share memory with one that the function writes over."""
        if self.code.given_away:
            given = {k: v for k, v in enumerate(values) if isinstance(v, np.ndarray)}
            arrays = [(_where(self.code.params[k]), v) for k, v in given.items()]
            refuse_overlap(arrays, [i for i, k in enumerate(given) if k in self.code.given_away])

    def ordered(
        self, args: Sequence[object], named: Mapping[str, object], count: int | None = None
    ) -> list[object]:
        """The arguments in the order of the parameters, of the first ones if a `count` is given.

        Raises:
            UnityError: Too many, too few, unknown or repeated.
        """
        names = [q.name for q in self.code.params][:count]
        inputs = takes_inputs(self.code.name, names)
        if len(args) > len(names):
            raise UnityError(f"{inputs}, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in names:
                raise UnityError(f"{inputs}; there is no {name!r}")
            if name in given:
                raise UnityError(f"{inputs}; {name!r} was given twice")
            given[name] = value
        missing = [n for n in names if n not in given]
        if missing:
            count = len(args) + len(named)
            raise UnityError(f"{inputs}, got {count}: missing {', '.join(missing)}")
        return [given[n] for n in names]


def _where(param: ParamInfo) -> str:
    return f"input {param.name!r}"


def _exported(result: Value, export: Export) -> object:
    if isinstance(result, tuple):
        return tuple(_exported(r, export) for r in result)
    return export(result) if isinstance(result, np.ndarray) else result
