"""LegalizeOps: ops become calls of kernels, one kernel for all sites that agree."""

from __future__ import annotations

from tests.transform.cases import apply, becomes, floats, keeps_meaning, stays
from unity.ir.dims import dim
from unity.ir.graph import Call, CallTir, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.transform.graph import FoldConstants, LegalizeOps


def calls(module: IRModule) -> list[CallTir]:
    main = module.graph_functions()["main"]
    return [b.value for b in walk_bindings(main) if isinstance(b.value, CallTir)]


def test_an_op_becomes_a_kernel_over_the_same_symbols() -> None:
    becomes(
        LegalizeOps(),
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], b: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
    return R.add(x, b)
""",
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], b: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
    y = R.call_tir(add, (x, b), out=f32[Tensor, n, 4])
    return y

@script.prim_func(attrs={"num_outputs": 1, "op": "add", "pattern": "broadcast", "private": True})
def add(x1: f32[Buffer, n, 4], x2: f32[Buffer, 4], out: f32[Buffer, n, 4]) -> None:
    for i0, i1 in T.grid(n, 4):
        with T.block("add"):
            vi0, vi1 = T.axis.remap("SS", i0, i1)
            out[vi0, vi1] = x1[vi0, vi1] + x2[vi1]
""",
    )


def test_sites_that_differ_in_names_of_symbols_share_a_kernel() -> None:
    module = apply(
        LegalizeOps(),
        """
n = dim("n")
m = dim("m")
@script.function
def main(x: f32[Tensor, n, 4], y: f32[Tensor, m, 4]) -> f32[Tensor, m, 4]:
    a = R.exp(x)
    b = R.exp(y)
    return b
""",
    )
    assert list(module.prim_funcs()) == ["exp"]
    assert [c.callee.name for c in calls(module)] == ["exp", "exp"]


def test_sites_that_differ_in_which_dims_are_equal_do_not() -> None:
    module = apply(
        LegalizeOps(),
        """
n = dim("n")
m = dim("m")
k = dim("k", min=1)
@script.function
def main(x: f32[Tensor, n, n], y: f32[Tensor, n, m], z: f32[Tensor, k, m]) -> f32[Tensor, n, n]:
    a = R.exp(x)
    b = R.exp(y)
    c = R.exp(z)
    return a
""",
    )
    assert list(module.prim_funcs()) == ["exp", "exp_1", "exp_2"]


def test_scalar_constants_are_literals() -> None:
    module = apply(
        LegalizeOps(),
        """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    a = R.multiply(x, 2.0)
    b = R.multiply(a, 2.0)
    c = R.multiply(b, 3.0)
    return c
""",
    )
    assert list(module.prim_funcs()) == ["multiply", "multiply_1"]
    assert all(len(c.args) == 1 for c in calls(module))


def test_sizes_that_no_shape_gives_are_passed() -> None:
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n + 1, 4]) -> f32[Tensor, n + 1, 4]:
    y = R.exp(x)
    return y
"""
    module = apply(LegalizeOps(), text)
    (call,) = calls(module)
    assert call.sym_args == (dim("n"),)
    keeps_meaning(LegalizeOps(), text, floats(0, (3, 4)))


def test_sizes_of_attributes_are_passed() -> None:
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> i64[Tensor, 2]:
    with R.dataflow():
        y = R.shape_to_tensor(R.shape_of(x))
    return y
"""
    got = keeps_meaning([FoldConstants(), LegalizeOps()], text, floats(0, (3, 4)))
    assert calls(got)[0].sym_args == (dim("n"),)


def test_tuples_of_tensors_are_taken_apart() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 2, 4], y: f32[Tensor, 3, 4]) -> f32[Tensor, 5, 4]:
    pair = (x, y)
    return R.concat(pair, 0)
"""
    got = keeps_meaning(LegalizeOps(), text, floats(0, (2, 4), (3, 4)))
    assert len(calls(got)[0].args) == 2


def test_several_outputs() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4, 6]) -> f32[Tensor, 4, 3]:
    a, b = R.split(x, 2, 1)
    return R.subtract(a, b)
"""
    got = keeps_meaning(LegalizeOps(), text, floats(0, (4, 6)))
    assert len(calls(got)[0].out) == 2


def test_views_and_data_dependent_ops_stay() -> None:
    stays(
        LegalizeOps(),
        """
k = dim("k")
@script.function
def main(x: f32[Tensor, 4, 4]) -> i64[Tensor, 1, k]:
    y = R.reshape(x, (16,))
    z: i64[Tensor, 1, k] = R.nonzero(y)
    return z
""",
    )


def test_kernel_names_avoid_functions_of_the_module() -> None:
    module = apply(
        LegalizeOps(),
        """
@script.function
def exp(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.exp(x)

@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return exp(x)
""",
    )
    assert list(module.prim_funcs()) == ["exp_1"]
    (binding,) = module.graph_functions()["main"].body.blocks[0].bindings
    assert isinstance(binding.value, Call)
    assert not isinstance(binding.value.callee, Op)


def test_a_batch_of_one_is_indexed_by_its_axis() -> None:
    becomes(
        LegalizeOps(),
        """
@script.function
def main(x: f32[Tensor, 1, 4], b: f32[Tensor, 1, 1]) -> f32[Tensor, 1, 4]:
    return R.add(x, b)
""",
        """
@script.function
def main(x: f32[Tensor, 1, 4], b: f32[Tensor, 1, 1]) -> f32[Tensor, 1, 4]:
    y = R.call_tir(add, (x, b), out=f32[Tensor, 1, 4])
    return y

@script.prim_func(attrs={"num_outputs": 1, "op": "add", "pattern": "broadcast", "private": True})
def add(x1: f32[Buffer, 1, 4], x2: f32[Buffer, 1, 1], out: f32[Buffer, 1, 4]) -> None:
    for i0, i1 in T.grid(1, 4):
        with T.block("add"):
            vi0, vi1 = T.axis.remap("SS", i0, i1)
            out[vi0, vi1] = x1[vi0, vi1] + x2[vi0, 0]
""",
    )
