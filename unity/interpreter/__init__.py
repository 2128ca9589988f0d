"""The reference semantics of both levels of the IR: slow, plain, and the oracle of everything else.

`interpret` runs a graph function of a module, `run_prim_func` one kernel.
"""

from __future__ import annotations

from unity.interpreter.graph import Interpreter, interpret
from unity.interpreter.kernel import Kernel, run_prim_func
from unity.interpreter.values import Closure, Value

__all__ = ["Closure", "Interpreter", "Kernel", "Value", "interpret", "run_prim_func"]
