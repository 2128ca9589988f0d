"""Tutorial 9: a team with Relay models and scripts comes over.

Run it: ``python tutorials/09_migrate_from_relay.py``. ``relay_operators.md`` beside this file says
of each of Relay's operators whether it is translated, and why not.

=====================================  ===========================================================
there                                  here
=====================================  ===========================================================
Relay function, ``IRModule``           graph function, ``IRModule``: ``@script.function``
``relay.build(mod, target, params)``   ``unity.compile(module, target)``
graph executor, VM, AOT executor       one executable: ``exe(x)``, ``exe.run({"x": x})``
``lib.export_library("net.so")``       ``exe.save("net.unity")``; ``exe.export_library`` for C
``relay.Any()``, ``?``                 symbols, ``dim("n")``; one executable for every size
TE, TOPI                               ``unity.te``, ``unity.op``: an operator is a row of rules
``te.create_schedule``, ``s[C].tile``  ``unity.transform.schedule``: steps, each checked
AutoTVM, Ansor, MetaSchedule           default schedules; ``resolve="measure"``, ``decisions=``;
                                       AutoTVM's tile sizes: ``relay.logs.applied(records)``,
                                       those that pay here: ``relay.logs.measured(module, records)``
``relay.transform.*``                  ``unity.pipeline("cpu")``: passes as a list to edit; a few
                                       (``FoldConstant``, ``ConvertLayout`` ...) run as they did
``ExprMutator``, pattern rewrites      ``unity.rewrite_rule(before, after)``, checked on numbers
BYOC: annotate, merge, partition       ``resolve="engine:NAME"``; engines of your own (tutorial 5)
``relay.quantize``, ``qnn`` dialect    ``qnn`` files are translated to the bit
=====================================  ===========================================================
"""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

import numpy as np

import unity
from unity import relay, script
from unity.errors import UnsupportedError
from unity.frontend.relay.migration import migrate
from unity.frontend.relay.wishes import wishes
from unity.relay import graph_executor, tvm
from unity.script import Buffer, R, T, Tensor, dim, f32
from unity.transform import Context
from unity.transform.graph import Rewrite

rng = np.random.default_rng(0)


# %% A script. It was written for TVM, and what changed are its imports: the two lines above that
# name `relay` and `tvm`. All imports change in one way: `tvm.relay` is `unity.relay`, any other
# `tvm` is `unity.relay.tvm` (`from unity.relay.tvm.autotvm.tuner import XGBTuner`). Errors in a
# script name its own lines.
data = relay.var("data", shape=(relay.Any(), 3, 16, 16), dtype="float32")
weight = relay.var("conv.weight", shape=(8, 3, 3, 3))
gamma, beta, mean, variance = (relay.var(f"bn.{n}", shape=(8,)) for n in ("g", "b", "m", "v"))
net = relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=8, padding=(1, 1))
net = relay.nn.relu(relay.nn.batch_norm(net, gamma, beta, mean, variance)[0])
net = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(net))
net = relay.nn.dense(net, relay.var("fc.weight", shape=(5, 8)))
mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(net), net))
params = {
    "conv.weight": rng.standard_normal((8, 3, 3, 3), np.float32),
    "bn.g": np.ones(8, np.float32),
    "bn.b": np.zeros(8, np.float32),
    "bn.m": np.zeros(8, np.float32),
    "bn.v": np.ones(8, np.float32),
    "fc.weight": rng.standard_normal((5, 8), np.float32),
}
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params=params)
images = rng.standard_normal((2, 3, 16, 16), np.float32)
module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
module.set_input("data", images)
module.run()
scores = module.get_output(0).numpy()
print(scores)
print(lib.executable.explain())  # behind the old names stands an executable of ours

# %% A model. On the old installation two lines save it, whatever it was imported from:
#     open("net.relay", "w").write(mod.astext(show_meta_data=True))
#     open("net.params", "wb").write(relay.save_param_dict(params))
# Here `unity.load("net.relay", params="net.params")` reads it, and so do the commands. `unity
# migrate` makes a program of it, to keep and to change, and a report of what became of what.
folder = tempfile.TemporaryDirectory()
path = Path(folder.name)
(path / "net.relay").write_text(mod.astext(show_meta_data=True))
(path / "net.params").write_bytes(relay.save_param_dict(params))
found = migrate(path / "net.relay", path / "net.params")
print(found.report)
print(found.source)
found.write(path / "net.py")
main = runpy.run_path(str(path / "net.py"))["main"]
np.testing.assert_allclose(unity.compile(main)(images), scores, rtol=1e-4, atol=1e-5)

# %% An operator of your own, which TVM knew by a registration in C++, is refused by its name ...
TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 64), float32]) { acme.soft_clip(nn.relu(%x)) }
"""
try:
    unity.compile(migrate(TEXT).module)
except unity.UnityError as error:
    print(error)

# ... so say it by operators that there are, as a function of the model,
SAID = (
    TEXT.replace("acme.soft_clip(", "@soft_clip(")
    + """
def @soft_clip(%x: Tensor[(?, 64), float32]) { multiply(tanh(divide(%x, 4f)), 4f) }
"""
)
x = rng.standard_normal((3, 64), np.float32) * 5
clipped = np.tanh(np.maximum(x, 0) / 4) * 4
np.testing.assert_allclose(
    unity.compile(migrate(SAID).module)(x), clipped, rtol=1e-4, atol=1e-5
)  # fused with its neighbours to one kernel


# ... or write its kernel, and call that in the program that the migration gave.
n = dim("n")


@script.prim_func
def soft_clip(a: f32[Buffer, n, 64], c: f32[Buffer, n, 64]) -> None:
    for i, j in T.grid(n, 64):
        with T.block("soft_clip"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = T.tanh(a[vi, vj] / 4.0) * 4.0


@script.function
def with_kernel(x: f32[Tensor, n, 64]) -> f32[Tensor, n, 64]:
    return R.call_tir(soft_clip, (R.nn.relu(x),), out=f32[Tensor, n, 64])


np.testing.assert_allclose(unity.compile(with_kernel)(x), clipped, rtol=1e-4, atol=1e-5)


# %% A pass of your own. There it was a visitor, here most are a rule: two functions, compared on
# random inputs when the rule is made. Visitors run as well (`relay.ExprMutator`, in a
# `relay.transform.function_pass`), but see Relay, and not what becomes of it.
@script.function
def before(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(R.tanh(R.divide(x, 4.0)), 4.0)


@script.function
def after(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(R.tanh(R.multiply(x, 0.25)), 4.0)


rewritten = Rewrite((unity.rewrite_rule(before, after),))(migrate(SAID).module, Context())
assert "R.divide" not in str(rewritten)

# %% BYOC. Functions partitioned for a compiler are put in place; whose they were is kept as a wish,
# for the engine of that name, if there is one. Nothing need be partitioned: an engine takes what
# it can (`resolve="engine:openvino"`).
PARTED = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32]) {
  %0 = fn (%a: Tensor[(4, 8), float32], Compiler="openvino", Primitive=1) { exp(%a) };
  negative(%0(%x))
}
"""
print(wishes(migrate(PARTED).module))  # unity.compile(module, resolve=wishes(module))


# %% Lists and trees. How far an input goes is part of a program: an example says it, by names of
# constructors, None for tensors; a Python list is a list of the prelude's. A value of another form
# is refused. `relay.vm` compiles for each form that it is called with.
SUMMED = """#[version = "0.0.5"]
def @main(%xs: List[Tensor[(2), float32]]) { @foldl(add, @hd(%xs), @tl(%xs)) }
"""
pairs = [np.array(p, np.float32) for p in ([1, 2], [3, 4], [5, 6])]
three = unity.compile(migrate(SUMMED, examples={"xs": [None, None, None]}).module)
np.testing.assert_array_equal(three(pairs), [9, 12])
np.testing.assert_array_equal(three(("Cons", pairs[0], ("Cons", pairs[1], pairs[2:]))), [9, 12])
machine = relay.vm.VirtualMachine(relay.vm.compile(relay.parse(SUMMED), "llvm"))
for count in (1, 2, 3):
    np.testing.assert_array_equal(machine.run(pairs[:count]), sum(pairs[:count]))


# %% Traps, each as it is in files, whatever wrote them.
def run(text: str, *inputs: np.ndarray) -> np.ndarray:
    """What a Relay text computes."""
    return np.asarray(unity.compile(migrate(f'#[version = "0.0.5"]\n{text}\n').module)(*inputs))


a, b = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
# A weight of `nn.dense` has its outputs first: it is transposed.
dense = "def @main(%a: Tensor[(2, 3), float32], %b: Tensor[(4, 3), float32]) { nn.dense(%a, %b) }"
np.testing.assert_allclose(run(dense, a, b), a @ b.T)
# In Python `relay.nn.batch_matmul` transposed its second operand unless told not to; in files it
# does so if they say so. `relay.nn.batch_matmul` here is Python's.
left, right = relay.var("l", shape=(1, 2, 3)), relay.var("r", shape=(1, 4, 3))
assert "transpose_b=True" in relay.nn.batch_matmul(left, right).astext()
# Python's numbers are 32 bits: 1 is int32, 1f is float32.
assert relay.const(1).data.dtype == np.int32
# Integers: `divide` rounds to zero, `floor_divide` down.
pair = "%a: Tensor[(2), int32], %b: Tensor[(2), int32]"
whole = np.array([-7, 7], np.int32), np.array([2, 2], np.int32)
np.testing.assert_array_equal(run(f"def @main({pair}) {{ divide(%a, %b) }}", *whole), [-3, 3])
np.testing.assert_array_equal(run(f"def @main({pair}) {{ floor_divide(%a, %b) }}", *whole), [-4, 3])
# `qnn.requantize` is exact, in integers. On x86 newer versions of TVM took float32 for it unless
# told otherwise, which is one off here and there: `compute_dtype` asks for that.
HALVED = """def @main(%x: Tensor[(1), int32]) {{
  qnn.requantize(%x, 0.5f, 0, 1f, 0, {} out_dtype="int32")
}}"""
large = np.array([2**24 + 1], np.int32)
assert run(HALVED.format(""), large) == 2**23 + 1
assert run(HALVED.format('compute_dtype="float32",'), large) == 2**23
# No two `?` are equal until something says so: what must be equal is checked when it runs.
UNKNOWN = "def @main(%a: Tensor[(?, 3), float32], %b: Tensor[(?, 3), float32]) { add(%a, %b) }"
print(migrate(f'#[version = "0.0.5"]\n{UNKNOWN}\n').source)
# `print(mod)` writes no constants, so nothing reads it back: `astext(show_meta_data=True)` does.
try:
    migrate('#[version = "0.0.5"]\ndef @main() { meta[relay.Constant][0] }\n')
except unity.UnityError as error:
    print(error)
# What training, random numbers or TVM's own lowering needs is refused, all of it at once.
try:
    migrate(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {\n'
        "  (random.threefry_split(%x), memory.kill(%x))\n}\n"
    )
except UnsupportedError as error:
    print(error)
folder.cleanup()
