"""A kernel that was laid out for unknown sizes, as it is at those that it is tuned for.

How it is laid out stays; but conditions on sizes are decided, and tails have one length. It is
compiled in a fraction of the time then, and which of two layouts is faster is seen by it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.ir.dims import evaluate
from unity.ir.graph import BindingBlock, Body, CallTir, Function, VarBinding
from unity.ir.module import IRModule
from unity.ir.prim_expr import imm
from unity.ir.stmt import PrimFunc
from unity.ir.visit import substitute_symbols, type_symbols
from unity.op.infer import infer_type
from unity.transform.graph.symbols import kernel_sizes
from unity.transform.schedule.primitives.specialize import with_sizes

from .task import CALLER, KERNEL


def at_sizes(module: IRModule, sizes: Mapping[str, int]) -> IRModule:
    """The program of a task with numbers in place of its symbols.

    Args:
        module: As `Task.module` makes it, its kernel laid out; sizes are all that the kernel takes
            besides buffers.
        sizes: A number for every symbol of the program, by name.
    """
    kernel, main = module[KERNEL], module[CALLER]
    assert isinstance(kernel, PrimFunc)
    assert isinstance(main, Function)
    ((binding,),) = (block.bindings for block in main.body.blocks)
    assert isinstance(binding, VarBinding)
    call = binding.value
    assert isinstance(call, CallTir)
    values = {s: sizes[s.name] for p in main.params for s in type_symbols(p.type)}
    given = [*(infer_type(a, {}) for a in call.args), *call.out]
    own = kernel_sizes(kernel, given, call.sym_args)
    fixed = with_sizes(kernel, {s: imm(evaluate(d, values)) for s, d in own.items()})
    alone = VarBinding(binding.var, replace(call, sym_args=()))
    body = Body((BindingBlock((alone,), dataflow=True),), main.body.result)
    caller = substitute_symbols(replace(main, body=body), {s: values[s] for s in values})
    return IRModule({CALLER: caller, KERNEL: fixed})
