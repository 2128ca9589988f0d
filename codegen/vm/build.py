"""A module to a `Program`: one `FunctionCode` for each graph function and closure.

Takes the form that memory planning gives (``memory.*`` calls and control flow) and also calls of
kernels that are not planned yet, whose outputs it allocates one by one. Ops that have no kernel run
their numpy reference on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.codegen.vm.alignment import on_lines
from unity.codegen.vm.body import build_function
from unity.codegen.vm.shape_results import with_dims
from unity.codegen.vm.tables import Host, Tables
from unity.errors import UnsupportedError
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.runtime.bytecode import Program
from unity.transform.graph.simplify.dce import references


@dataclass(frozen=True, slots=True)
class Built:
    """A program and the tables that are kept beside it."""

    program: Program
    constants: tuple[Array, ...]
    hosts: tuple[Host, ...]


def build_program(module: IRModule) -> Built:
    """The program of a module.

    Raises:
        UnsupportedError: The module holds things that the VM can't run; all are listed.
    """
    tables = Tables(module)
    graph = module.graph_functions()
    tables.names.update({name: tables.reserve() for name in graph})
    called = {name for function in graph.values() for name in references(function.body)}
    for name, function in graph.items():
        code = build_function(name, function, tables)
        tables.functions[tables.names[name]] = code if name in called else with_dims(code)
    if tables.gaps:
        raise UnsupportedError("the VM can't run this module", tables.gaps)
    return Built(tables.program(), on_lines(tables.constants()), tables.hosts())
