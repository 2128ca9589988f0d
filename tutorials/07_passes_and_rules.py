"""Tutorial 7: write a pass, and rewrite rules that are checked when you write them.

Run it: ``python tutorials/07_passes_and_rules.py``. Most changes of a graph are rules: two
functions of the language, one to look for and one to put in its place. What rules can't say is a
pass.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import unity
import unity.demo
from unity import script
from unity.checking import watched
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.op.call import call_op
from unity.script import R, Tensor, dim, f32, parse
from unity.transform import Context, Pass, map_functions
from unity.transform.graph import Rewrite, RewriteRule, SimplifyOps
from unity.transform.graph.rewriter import BodyRewriter
from unity.transform.pattern import any_, const, find, op, optional

n, m = dim("n"), dim("m")


# %% A rule. Its parameters stand for any values of their types, here of any shape.
@script.function
def by_hand(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.multiply(x, R.sigmoid(x))


@script.function
def by_name(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.nn.silu(x)


swish = unity.rewrite_rule(by_hand, by_name)

# %% A pass applies rules wherever they fit, in either order of a product, until none does.
program = parse("""
rows = dim("rows")
@script.function
def main(x: f32[Tensor, rows, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, rows, 8]:
    with R.dataflow():
        y = R.matmul(x, w)
        gate = R.sigmoid(y)
        z = R.multiply(gate, y)
    return z
""")
print(Rewrite((swish,))(program, Context()))


# %% When a rule is made, both sides are run on random inputs. What differs is refused, and shown.
@script.function
def quotient(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.divide(R.multiply(x, y), y)


@script.function
def cancelled(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return x


try:
    unity.rewrite_rule(quotient, cancelled)
except unity.UnityError as error:
    print(error)  # there are zeros among the numbers tried


# %% Symbols bind sizes: this one asks for two matrices of the same size, whatever it is. A match
# whose values are used elsewhere is left alone, since they would have to be computed anyway.
@script.function
def two_products(
    x: f32[Tensor, n, m], v: f32[Tensor, m, m], w: f32[Tensor, m, m]
) -> f32[Tensor, n, m]:
    return R.add(R.matmul(x, v), R.matmul(x, w))


@script.function
def one_product(
    x: f32[Tensor, n, m], v: f32[Tensor, m, m], w: f32[Tensor, m, m]
) -> f32[Tensor, n, m]:
    return R.matmul(x, R.add(v, w))


distributed = unity.rewrite_rule(two_products, one_product)


# %% Attributes and numbers must be as they are written. Python values from around a function are
# part of it, so that a function of yours makes a rule for each: here, for each way to pool.
def pooling(size: int, step: int) -> RewriteRule:
    """The largest of what is not negative is the largest, if that is not negative."""

    @script.function
    def pooled(x: f32[Tensor, R.rank(4)]) -> f32[Tensor, R.rank(4)]:
        y = R.nn.relu(x)
        return R.nn.max_pool2d(y, pool_size=(size, size), strides=(step, step))

    @script.function
    def pooled_first(x: f32[Tensor, R.rank(4)]) -> f32[Tensor, R.rank(4)]:
        y = R.nn.max_pool2d(x, pool_size=(size, size), strides=(step, step))
        return R.nn.relu(y)

    return unity.rewrite_rule(pooled, pooled_first, name=f"pool{size}/{step}")


# %% In a pipeline rules stand among the other passes, early, while operators are what was written.
POOLING = (pooling(2, 2), pooling(3, 2))
passes = unity.pipeline().insert_after(SimplifyOps, Rewrite((swish, distributed, *POOLING)))
path = Path(unity.demo.__file__).parent / "digits.onnx"
with np.load(path.with_suffix(".npz")) as held_out:
    images = held_out["images"]
model = unity.load(path)
rewritten = str(Rewrite(POOLING)(model, Context()))
assert rewritten.index("max_pool2d") < rewritten.rindex("nn.relu")  # a quarter of the numbers
executable = unity.compile(path, pipeline=passes, check=True)
np.testing.assert_allclose(executable(images), unity.compile(path)(images), 1e-4, 1e-4)

# %% To look without changing anything there are patterns: alternatives, what may follow, what is
# captured, conditions on types. Tutorial 4 uses them to choose who computes what they match.
biased = op("nn.conv2d", any_("x"), const("weight")) + const("bias")
layer = optional(biased, lambda y: op("nn.relu", y), lambda y: op("nn.max_pool2d", y))
for match in find(layer, model.graph_functions()["main"]):
    print(match.root.name, sorted(var.name for var in match.inner))


# %% A pass is for what rules can't say. `BodyRewriter` walks over a function and asks about each
# binding; what an operand is bound to is in `values`, and `emit` binds something in front.
@dataclass(frozen=True, slots=True)
class DivideOnce(Pass):
    """Divides constants at compile time: ``x / c`` becomes ``x * (1 / c)``."""

    def __call__(self, module: unity.IRModule, ctx: Context) -> unity.IRModule:
        return map_functions(module, lambda f: _Divisions(module).function(f))


class _Divisions(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("divide"), (x, Constant(data))) if data.dtype == np.float32:
                return call_op("multiply", x, np.divide(np.float32(1), data))
            case _:
                return value  # the same object: nothing has changed


halves = parse("""
@script.function
def main(x: f32[Tensor, 8]) -> f32[Tensor, 8]:
    return R.exp(R.divide(x, 3.0))
""")
print(DivideOnce()(halves, Context()))


# %% Check it as the compiler's own are checked. `watched` compares, after each pass, what the
# program computes by the interpreter; a mistake is found where it is made. `trace` writes down what
# each pass did.
@dataclass(frozen=True, slots=True)
class DivideWrongly(Pass):
    """Forgets that one is to be divided."""

    def __call__(self, module: unity.IRModule, ctx: Context) -> unity.IRModule:
        return map_functions(module, lambda f: _Wrong(module).function(f))


class _Wrong(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("divide"), (x, Constant(data))):
                return call_op("multiply", x, data)
            case _:
                return value


right, wrong = (
    unity.pipeline().insert_after(SimplifyOps, p()) for p in (DivideOnce, DivideWrongly)
)
watch = watched(halves, rtol=1e-4)
with tempfile.TemporaryDirectory() as folder:
    executable = unity.compile(halves, pipeline=right, instruments=[watch], trace=folder)
    print(f"{len(list(Path(folder).iterdir()))} files; open index.html in a browser")
x = np.arange(8, dtype=np.float32)
np.testing.assert_allclose(executable(x), np.exp(x / 3), rtol=1e-5)
try:
    unity.compile(halves, pipeline=wrong, instruments=[watched(halves, rtol=1e-4)])
except unity.UnityError as error:
    print(error)
