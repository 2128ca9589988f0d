"""Which kernels of a program only move values, after memory is planned."""

from __future__ import annotations

from unity.codegen.llvm.host import host_target
from unity.ir.graph import Call, FunctionRef, Op
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Intrinsic
from unity.ir.stmt import Block, PrimFunc, Store
from unity.ir.visit import walk_bindings, walk_prim, walk_stmt
from unity.machine.target import Target
from unity.transform import Context, pipeline
from unity.transform.graph import EliminateDeadCode, LowerCalls, PlanMemory
from unity.transform.schedule import ScheduleDefault


def kernels(module: IRModule, target: Target | None = None) -> list[str]:
    """The names of the kernels that run, in order; before they are scheduled."""
    return [name for name, _ in _planned(module, target)]


def moving(module: IRModule, target: Target | None = None) -> list[str]:
    """Those of them that compute no number."""
    return [name for name, kernel in _planned(module, target) if _only_moves(kernel)]


def _planned(module: IRModule, target: Target | None) -> list[tuple[str, PrimFunc]]:
    ctx = Context(target or host_target(1))
    module = pipeline("cpu").until(ScheduleDefault).run(module, ctx)
    module = PlanMemory()(EliminateDeadCode()(LowerCalls()(module, ctx), ctx), ctx)
    found: list[tuple[str, PrimFunc]] = []
    for binding in walk_bindings(module.graph_functions()["main"]):
        match binding.value:
            case Call(Op("memory.call_kernel"), (FunctionRef(name), _, _)):
                found.append((name, module.prim_funcs()[name]))
            case _:
                pass
    return found


def _only_moves(kernel: PrimFunc) -> bool:
    for stmt in walk_stmt(kernel.body):
        if isinstance(stmt, Block) and stmt.init is not None:
            return False
        if isinstance(stmt, Store) and any(
            isinstance(e, Binary | Intrinsic) and e.dtype.is_float for e in walk_prim(stmt.value)
        ):
            return False
    return True
