"""Tutorial 15: walk through the compiler in a debugger.

Run it: ``python tutorials/15_walk_the_compiler.py``, or with ``--debug`` to type the commands
yourself. The compiler is Python from the first line to the LLVM that it prints, so Python's
debugger is the way to learn it. Lines that begin with ``# ->`` are what it prints.
"""

from __future__ import annotations

import io
import pdb
import sys
from dataclasses import dataclass

import unity
from unity import script
from unity.script import R, Tensor, dim, f32
from unity.transform import Context, Pass, backend_of

n = dim("n")


@script.function
def main(x: f32[Tensor, n, 64]) -> f32[Tensor, n, 64]:
    return R.nn.softmax(R.exp(x) * 2.0)


# %% 1. By hand: a pipeline is a list of passes, and a pass a function from module to module.
# Nothing is hidden between them, so the whole compiler is this loop. Here is what each one changes.
context = Context(backend_of("cpu").machine())
module = main.module()
for step in unity.pipeline().passes:
    after = step(module, context)
    if after is not module:
        print(f"{step.name}: {', '.join(after.functions)}")
    module = after
# -> FuseOps: main, exp, multiply, softmax, fused_exp_multiply_softmax
# -> EliminateDeadCode: main, fused_exp_multiply_softmax


# %% 2. In a debugger: an instrument is told before and after each pass, which is where to stop.
# Type ``s`` to step into the pass, ``n`` to step over, ``p`` or ``pp`` to print, ``c`` to go on.
@dataclass(frozen=True, slots=True)
class StopBefore:
    """Opens a debugger in front of a pass."""

    name: str
    debugger: pdb.Pdb

    def before(self, step: Pass, module: unity.IRModule, ctx: Context) -> None:
        """Stop here, if it is the pass."""
        if step.name == self.name:
            self.debugger.set_trace()

    def after(self, step: Pass, module: unity.IRModule, ctx: Context) -> None:
        """Go on."""


# %% The commands of one walk: print the module, go up to where passes are run, step into `FuseOps`,
# and look at what it was given. Each word of the printed program is a node that can be printed,
# too.
COMMANDS = """
p step.name
p [b.var.name for b in module["main"].body.blocks[0].bindings]
up
tbreak type(step).__call__
c
n
p type(self).__name__, list(module.functions)
c
"""


def debugger() -> pdb.Pdb:
    """One that reads commands from the keyboard, or those above."""
    if "--debug" in sys.argv:
        return pdb.Pdb()
    return pdb.Pdb(stdin=io.StringIO(COMMANDS.lstrip()), stdout=sys.stdout, nosigint=True)


executable = unity.compile(main, instruments=[StopBefore("FuseOps", debugger())], cache=None)
# -> 'FuseOps'
# -> ('FuseOps', ['main', 'exp', 'multiply', 'softmax'])

# %% 3. Behind the passes: what they leave can be read at every level, and each kernel's loops lead
# to the LLVM beside them.
(kernel,) = executable.kernels
print(kernel)
# -> fused_exp_multiply_softmax
for level in (executable.ir(kernel), executable.llvm(kernel), executable.asm(kernel)):
    print(level.strip().splitlines()[0])

# %% 4. Where something broke: ``check=True`` compares numbers after each pass with the
# interpreter's, ``trace="folder"`` writes the program after each, and ``UNITY_TRACEBACK=full`` in
# the environment keeps our frames in the tracebacks of errors, for a debugger to go up in.
unity.compile(main, check=True, cache=None)
