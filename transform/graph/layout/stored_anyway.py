"""Which results go through memory even if kernels are fused: there they take half in bfloat16."""

from __future__ import annotations

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Expr, Function, Op, Var, VarBinding
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings
from unity.op.table import OPS

from ..uses import count_uses


def stored_anyway(f: Function) -> set[Var]:
    """Float32 variables that one kernel writes and another reads, as far as that is sure.

    The second of two contractions that are added: the first takes the sum into its kernel.
    """
    uses = count_uses(f.body)
    found: set[Var] = set()
    contracted: dict[Expr, int] = {}  # what follows a contraction pointwise, and when it is made
    for time, binding in enumerate(walk_bindings(f)):
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call):
            continue
        row = OPS.get(value.callee.name) if isinstance(value.callee, Op) else None
        if row is None:
            continue
        if row.precision == "always":
            contracted[binding.var] = time
            continue
        if row.pattern not in ("elementwise", "broadcast"):
            continue
        whole = [a for a in value.args if isinstance(a, Var) and a.type == binding.var.type]
        alone = [a for a in whole if a in contracted and uses[a] == 1]
        made = sorted(alone, key=contracted.__getitem__)
        found.update(made[1:])
        if made:
            contracted[binding.var] = contracted[made[0]]
    return {v for v in found if isinstance(v.type, TensorType) and v.type.dtype == FLOAT32}
