"""A program's tables while it is being built: functions, kernels, constants, host functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from unity.ir.dtype import Array, dtype
from unity.ir.graph import Constant, Function
from unity.ir.module import Definition, IRModule
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import Assert, Buffer, PrimFunc
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import walk_stmt
from unity.runtime.bytecode import ConstantInfo, FunctionCode, KernelInfo, Program

Host = Callable[..., object]


@dataclass(slots=True)
class Tables:
    """What `unity.codegen.vm.body` adds to as it goes.

    Attributes:
        functions: Code by index; None while it is being built.
        names: The indices of the module's graph functions.
        gaps: What the VM can't run, for one error in the end.
    """

    module: IRModule
    functions: list[FunctionCode | None] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    _kernels: dict[str, int] = field(default_factory=dict)
    _kernel_infos: list[KernelInfo] = field(default_factory=list)
    _constants: dict[int, int] = field(default_factory=dict)
    _constant_data: list[Constant] = field(default_factory=list)
    _hosts: list[tuple[str, Host]] = field(default_factory=list)

    def prim_func(self, name: str) -> PrimFunc:
        """The prim func of a name; the verifier has seen that it is one."""
        found = self.module[name]
        assert isinstance(found, PrimFunc), name
        return found

    def kernel(self, name: str) -> int:
        """The index of a kernel."""
        if name not in self._kernels:
            self._kernels[name] = len(self._kernel_infos)
            self._kernel_infos.append(_kernel_info(name, self.module[name]))
        return self._kernels[name]

    def outputs(self, name: str) -> int:
        """How many of a kernel's buffers, the last ones, it writes."""
        definition = self.module[name]
        if isinstance(definition, Function):
            return len(tensors_of(definition.result))
        return int(str(self.prim_func(name).attrs.get("num_outputs", 1)))

    def constant(self, constant: Constant) -> int:
        """The index of a constant; constants that share their data share it."""
        key = id(constant.data)
        if key not in self._constants:
            self._constants[key] = len(self._constant_data)
            self._constant_data.append(constant)
        return self._constants[key]

    def host(self, name: str, function: Host) -> int:
        """The index of a Python function."""
        self._hosts.append((name, function))
        return len(self._hosts) - 1

    def reserve(self) -> int:
        """An index for a function whose code comes later."""
        self.functions.append(None)
        return len(self.functions) - 1

    def program(self) -> Program:
        """The finished program."""
        functions = [f for f in self.functions if f is not None]
        assert len(functions) == len(self.functions)
        infos = tuple(
            ConstantInfo(c.name or f"c{i}", dtype(c.data.dtype).name, tuple(c.data.shape))
            for i, c in enumerate(self._constant_data)
        )
        hosts = tuple(name for name, _ in self._hosts)
        return Program(tuple(functions), tuple(self._kernel_infos), infos, hosts)

    def constants(self) -> tuple[Array, ...]:
        """The constants' data."""
        return tuple(c.data for c in self._constant_data)

    def hosts(self) -> tuple[Host, ...]:
        """The Python functions."""
        return tuple(function for _, function in self._hosts)


def tensors_of(t: Type) -> tuple[TensorType, ...]:
    """The tensors that an engine's function takes or gives: each one, or those of a tuple."""
    fields = t.fields if isinstance(t, TupleType) else (t,)
    found = tuple(f for f in fields if isinstance(f, TensorType))
    assert len(found) == len(fields), t
    return found


def _kernel_info(name: str, func: Definition) -> KernelInfo:
    if isinstance(func, Function):  # an engine's: it takes the dims of all its tensors
        given = [t for p in func.params for t in tensors_of(p.type)]
        tensors = (*given, *tensors_of(func.result))
        dims = sum(t.ndim or 0 for t in tensors)
        return KernelInfo(name, len(tensors), dims, (), str(func.attrs["engine"]))
    assert isinstance(func, PrimFunc), name
    buffers = sum(isinstance(p, Buffer) for p in func.params)
    numbers = len(size_params(func)) + len(scalar_params(func))
    messages = tuple(s.message for s in walk_stmt(func.body) if isinstance(s, Assert))
    return KernelInfo(name, buffers, numbers, messages)
