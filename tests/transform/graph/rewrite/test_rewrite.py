"""Users' rewrite rules: where they apply, what they leave alone, and that they end."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import unity
from tests.generators.graph import arguments_for, module
from tests.transform.cases import becomes, keeps_meaning, stays
from tests.transform.graph.rewrite import user_rules
from tests.transform.graph.rewrite.user_rules import TRUE
from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Op
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings
from unity.script import R, Tensor, dim, f32, parse
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, Normalize, Rewrite, RewriteRule, SimplifyOps

n, m = dim("n"), dim("m")
RULES = {name: RewriteRule(name, a.func, b.func) for name, (a, b) in TRUE.items()}


def test_symbols_bind_and_values_are_the_same() -> None:
    becomes(
        Rewrite((RULES["products"],)),
        """
b = dim("b")
@script.function
def main(x: f32[Tensor, b, 8], v: f32[Tensor, 8, 3], w: f32[Tensor, 8, 3], z: f32[Tensor, b, 8]
         ) -> f32[Tensor, b, 3]:
    with R.dataflow():
        p = R.matmul(x, v)
        q = R.matmul(x, w)
        s = R.add(p, q)
        p2 = R.matmul(x, v)
        q2 = R.matmul(z, w)
        s2 = R.add(p2, q2)
        y = R.multiply(s, s2)
    return y
""",
        """
b = dim("b")
@script.function
def main(x: f32[Tensor, b, 8], v: f32[Tensor, 8, 3], w: f32[Tensor, 8, 3], z: f32[Tensor, b, 8]
         ) -> f32[Tensor, b, 3]:
    with R.dataflow():
        add = R.add(v, w)
        s = R.matmul(x, add)
        p2 = R.matmul(x, v)
        q2 = R.matmul(z, w)
        s2 = R.add(p2, q2)
        y = R.multiply(s, s2)
    return y
""",
    )


def test_what_a_match_computes_on_its_way_may_not_be_used_elsewhere() -> None:
    program = """
@script.function
def main(x: f32[Tensor, 4], y: f32[Tensor, 4]) -> f32[Tensor, 4]:
    a = R.exp(x)
    b = R.exp(y)
    c = R.multiply(a, b)
    d = R.add(c, a)
    return d
"""
    stays(Rewrite((RULES["exponents"],)), program)
    returned = program.replace("d = R.add(c, a)", "d = (c, b)")
    returned = returned.replace("-> f32[Tensor, 4]", "-> R.Tuple(f32[Tensor, 4], f32[Tensor, 4])")
    stays(Rewrite((RULES["exponents"],)), returned)


def test_a_value_that_is_both_computed_inside_and_handed_in_is_kept() -> None:
    step = Rewrite([unity.rewrite_rule(factored, multiplied_out)])
    stays(
        step,
        """
@script.function
def main(x: f32[Tensor, 4], y: f32[Tensor, 4]) -> f32[Tensor, 4]:
    a = R.add(x, y)
    b = R.multiply(a, a)
    return b
""",
    )


def test_a_rule_that_gives_a_parameter() -> None:
    becomes(
        Rewrite((RULES["times one"], RULES["transposes"])),
        """
@script.function
def main(x: f64[Tensor, 4, 2]) -> f64[Tensor, 4, 2]:
    a = R.multiply(x, 1.0)
    b = R.multiply(1.0, a)
    c = R.permute_dims(b, (1, 0))
    d = R.permute_dims(c, (1, 0))
    return d
""",
        """
@script.function
def main(x: f64[Tensor, 4, 2]) -> f64[Tensor, 4, 2]:
    return x
""",
    )


def test_numbers_take_the_dtype_of_what_is_found() -> None:
    @script.function
    def twice(x: R.any_dtype[Tensor, ...]) -> R.any_dtype[Tensor, ...]:
        return R.add(x, x)

    @script.function
    def times_two(x: R.any_dtype[Tensor, ...]) -> R.any_dtype[Tensor, ...]:
        return R.multiply(x, 2)

    for short in ("f32", "f64", "i64", "i8", "bf16"):
        program = f"""
@script.function
def main(x: {short}[Tensor, 4]) -> {short}[Tensor, 4]:
    y = R.add(x, x)
    return y
"""
        rule = unity.rewrite_rule(twice, times_two)
        becomes(Rewrite((rule,)), program, program.replace("R.add(x, x)", "R.multiply(x, 2)"))


def test_facts_of_symbols_must_be_proven() -> None:
    eights = dim("eights", min=8, multiple_of=8)

    @script.function
    def before(x: f32[Tensor, eights]) -> f32[Tensor, eights]:
        return R.exp(x)

    @script.function
    def after(x: f32[Tensor, eights]) -> f32[Tensor, eights]:
        return R.negative(x)

    step = Rewrite((RewriteRule("eights", before.func, after.func),))
    for size, fits in {
        "16": True, "12": False, "dim('a')": False, "dim('a', multiple_of=8)": False,
        "dim('a', min=8, multiple_of=16)": True, "dim('a', min=1) * 8": True,
    }.items():  # fmt: skip
        found = step(
            parse(f"""
s = {size}
@script.function
def main(x: f32[Tensor, s]) -> f32[Tensor, s]:
    return R.exp(x)
"""),
            Context(),
        )
        assert ("negative" in ops(found)) == fits, size


def ops(found: IRModule) -> list[str]:
    main = found.graph_functions()["main"]
    values = [b.value for b in walk_bindings(main)]
    return [v.callee.name for v in values if isinstance(v, Call) and isinstance(v.callee, Op)]


def test_bodies_of_loops_and_branches() -> None:
    program = parse("""
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = x
    i = R.const(0, "int64")
    while R.less(i, 3):
        if R.greater(R.sum(y), 0.0):
            y = R.multiply(y, R.sigmoid(y))
        else:
            y = R.exp(y)
        i = R.add(i, 1)
    return y
""")
    step = Rewrite((RULES["silu"],))
    found = keeps_meaning(step, program, [np.array([1, 2, -3, 4], np.float32)])
    assert "nn.silu" in ops(found)
    assert "sigmoid" not in ops(found)


def test_tuples_shapes_and_shared_values() -> None:
    program = """
r = dim("r")
@script.function
def main(x: f32[Tensor, r, 8], y: f32[Tensor, r, 2, 4]) -> f32[Tensor, r, 8]:
    parts = R.split(x, 2, axis=1)
    a = R.exp(parts[0])
    b = R.exp(R.reshape(y, (r * 2, 4)))
    c = R.nn.relu(R.concat((a, R.max(R.reshape(b, (r, 2, 4)), axis=1)), axis=1))
    mean = R.mean(c, axis=-1, keepdims=True)
    d = R.subtract(c, mean)
    v = R.mean(R.multiply(d, d), axis=-1, keepdims=True)
    e = R.divide(d, R.sqrt(R.add(v, 0.00001)))
    return e
"""
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape, np.float32) for shape in ((3, 8), (3, 2, 4))]
    rules = [RULES[name] for name in ("half", "reshape", "concat", "norm")]
    found = keeps_meaning((Normalize(), Rewrite(tuple(rules))), program, args)
    names = ops(found)
    assert "split" not in names
    assert names.count("nn.relu") == 2
    assert names.index("exp", 2) < names.index("reshape")
    assert "sqrt" not in names


def test_rules_that_go_on_forever_are_named() -> None:
    @script.function
    def sums(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
        return R.subtract(x, y)

    @script.function
    def turned(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
        return R.negative(R.subtract(y, x))

    @script.function
    def grown(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
        return R.multiply(R.subtract(x, y), R.exp(R.subtract(y, y)))

    program = parse("""
@script.function
def main(a: f32[Tensor, 4], b: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.subtract(a, b)
""")
    silu = RULES["silu"]
    for after in (turned, grown):
        forever = unity.rewrite_rule(sums, after, name="forever")
        with pytest.raises(
            UnityError, match=r"rewriting 'main' does not end: after 50 rounds 'forever' still"
        ):
            Rewrite((silu, forever), limit=50)(program, Context())


@script.function
def relu(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.nn.relu(x)


@script.function
def at_least_zero(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.maximum(x, 0.0)


@script.function
def less(x: R.any_dtype[Tensor, ...], y: R.any_dtype[Tensor, ...]) -> R.any_dtype[Tensor, ...]:
    return R.subtract(x, y)


@script.function
def plus_negative(
    x: R.any_dtype[Tensor, ...], y: R.any_dtype[Tensor, ...]
) -> R.any_dtype[Tensor, ...]:
    return R.add(x, R.negative(y))


@script.function
def silu_once_more(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.nn.silu(x)


@script.function
def factored(
    x: R.any_dtype[Tensor, ...], y: R.any_dtype[Tensor, ...], z: R.any_dtype[Tensor, ...]
) -> R.any_dtype[Tensor, ...]:
    return R.multiply(x, R.add(y, z))


@script.function
def multiplied_out(
    x: R.any_dtype[Tensor, ...], y: R.any_dtype[Tensor, ...], z: R.any_dtype[Tensor, ...]
) -> R.any_dtype[Tensor, ...]:
    return R.add(R.multiply(x, y), R.multiply(x, z))


@script.function
def hyperbolic(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.tanh(x)


@script.function
def by_logistic(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.subtract(R.multiply(R.sigmoid(R.multiply(x, 2.0)), 2.0), 1.0)


def test_random_programs_keep_their_meaning() -> None:
    rules = tuple(
        unity.rewrite_rule(*sides)
        for sides in (
            (relu, at_least_zero),
            (less, plus_negative),
            (hyperbolic, by_logistic),
            (silu_once_more, user_rules.by_sigmoid),
            (user_rules.exp_times_exp, user_rules.exp_of_sum),
            TRUE["times one"],
        )
    )
    gone = {"nn.relu", "subtract", "tanh", "nn.silu"}
    applied = 0
    for seed in range(30):
        before = module(Random(seed), size=16)
        args = arguments_for(before, np.random.default_rng(seed))
        after = keeps_meaning((Rewrite(rules), EliminateDeadCode()), before, args)
        applied += after is not before
        assert not gone & set(of_reals(after)), seed
    assert applied > 20


def of_reals(module: IRModule) -> list[str]:
    """The operators that give float32, which the rules are of."""
    return [
        b.value.callee.name
        for f in module.graph_functions().values()
        for b in walk_bindings(f)
        if isinstance(b.value, Call)
        and isinstance(b.value.callee, Op)
        and isinstance(kind := atom_type(b.var), TensorType)
        and kind.dtype is not None
        and kind.dtype == FLOAT32
    ]


def chain(rng: Random, steps: int) -> str:
    """A program of integers, whose sums and products have one result whatever their order."""
    values = ["x", "y", "z"]
    lines: list[str] = []
    for i in range(steps):
        a, b = rng.choice(values[-2:]), rng.choice(values)
        if rng.random() < 0.5:
            a, b = b, a
        kind = rng.choice(["add", "multiply", "multiply", "subtract", "maximum", "negative"])
        lines.append(f"    v{i} = R.{kind}({a}{'' if kind == 'negative' else f', {b}'})")
        values.append(f"v{i}")
    body = "\n".join(lines)
    return f"""
n = dim("n")
@script.function
def main(x: i64[Tensor, n, 3], y: i64[Tensor, 3], z: i64[Tensor, n, 1]) -> i64[Tensor, ...]:
{body}
    return {values[-1]}
"""


def test_random_sums_and_products_are_the_same_numbers() -> None:
    sides = (factored, multiplied_out), (less, plus_negative), TRUE["times one"]
    step = Rewrite([unity.rewrite_rule(*pair) for pair in sides])
    rng = np.random.default_rng(0)
    applied = 0
    for seed in range(60):
        before = Normalize()(parse(chain(Random(seed), 8)), Context())
        args = [rng.integers(-9, 9, shape) for shape in ((2, 3), (3,), (2, 1))]
        after = keeps_meaning(step, before, args)
        applied += ops(after).count("multiply") > ops(before).count("multiply")
        expected, got = (np.asarray(interpret(p, "main", args)) for p in (before, after))
        np.testing.assert_array_equal(got, expected)
    assert applied > 10


KEPT = unity.rewrite_rule(*TRUE["silu"])


def test_in_a_pipeline_and_printed() -> None:
    rule = unity.rewrite_rule(user_rules.by_sigmoid, user_rules.by_silu)
    passes = unity.pipeline().insert_after(SimplifyOps, Rewrite((rule,)))
    executable = unity.compile(
        parse("""
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return R.multiply(R.sigmoid(x), x)
"""),
        pipeline=passes,
        check=True,
    )
    assert "silu" in executable.ir()
    assert hash(passes) == hash(unity.pipeline().insert_after(SimplifyOps, Rewrite((rule,))))
    scope: dict[str, object] = {rule.name: rule}
    exec(str(passes), scope)
    assert scope["pipeline"] == passes
    assert "    Rewrite((by_sigmoid,)),\n" in str(passes)
    printed = str(unity.pipeline().insert_after(SimplifyOps, Rewrite((KEPT,))))
    assert f"from {__name__} import KEPT\n" in printed


def applies(step: Rewrite, params: str, value: str) -> bool:
    """Whether rules find something in a program of one line."""
    program = parse(f"""
n = dim("n")
m = dim("m")
@script.function
def main({params}) -> R.any_dtype[Tensor, ...]:
    return {value}
""")
    return step(program, Context()) is not program


def test_dims_that_may_differ_do_not_fit() -> None:
    @script.function
    def squared(x: f32[Tensor, n, n], y: f32[Tensor, 2 * n]) -> f32[Tensor, ...]:
        return R.add(R.sum(x), R.sum(y))

    @script.function
    def zero(x: f32[Tensor, n, n], y: f32[Tensor, 2 * n]) -> f32[Tensor, ...]:
        return R.multiply(R.sum(y), R.sum(x))

    step = Rewrite((RewriteRule("squares", squared.func, zero.func),))
    for x, y, fits in [
        ("4, 4", "8", True), ("m, m", "m + m", True), ("m + 1, 1 + m", "2 * (m + 1)", True),
        ("4, 5", "8", False), ("4, 4", "9", False), ("n, m", "2 * n", False),
        ("n, n", "2 * m", False), ("n, 4", "8", False), ("m, m", "n", False),
    ]:  # fmt: skip
        params = f"x: f32[Tensor, {x}], y: f32[Tensor, {y}]"
        assert applies(step, params, "R.add(R.sum(x), R.sum(y))") == fits, params


def test_operands_and_attributes_are_as_written() -> None:
    @script.function
    def normed(x: f32[Tensor, ...], g: f32[Tensor, ...]) -> f32[Tensor, ...]:
        return R.nn.layer_norm(x, g, axes=(-1,), epsilon=1e-5)

    @script.function
    def scaled(x: f32[Tensor, ...], g: f32[Tensor, ...]) -> f32[Tensor, ...]:
        return R.multiply(x, g)

    step = Rewrite((RewriteRule("norm", normed.func, scaled.func),))
    params = "x: f32[Tensor, 4, 8], g: f32[Tensor, 8], b: f32[Tensor, 8]"
    assert applies(step, params, "R.nn.layer_norm(x, g, axes=(-1,), epsilon=1e-5)")
    assert not applies(step, params, "R.nn.layer_norm(x, g, b, axes=(-1,), epsilon=1e-5)")
    assert not applies(step, params, "R.nn.layer_norm(x, g, axes=(-1,), epsilon=1e-6)")
    assert applies(step, params, "R.nn.layer_norm(x, g, axes=1, epsilon=1e-5)")
    three = "x: f32[Tensor, 8, 8, 8], g: f32[Tensor, 8]"
    assert applies(step, three, "R.nn.layer_norm(x, g, axes=2, epsilon=1e-5)")
    assert not applies(step, three, "R.nn.layer_norm(x, g, axes=1, epsilon=1e-5)")
    doubled = Rewrite(
        (RewriteRule("double", user_rules.doubled.func, user_rules.nearly_doubled.func),)
    )
    assert applies(doubled, "x: f32[Tensor, n]", "R.multiply(2.0, x)")
    assert not applies(doubled, "x: f32[Tensor, n]", "R.multiply(x, 2.001)")
    assert not applies(doubled, "x: f64[Tensor, n]", "R.multiply(x, 2.0)")
    assert not applies(doubled, "x: f32[Tensor, n, 1]", "R.multiply(x, 2.0)")


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        ("0.0", "0.0", True),
        ("0.0", "1e-6", False),
        ("1e-6", "1e-6", True),
        ("1e-6", "2e-6", False),
        ("1e-6", "0.0", False),
        ("3e20", "3e20", True),
    ],
)
def test_small_constants_are_told_apart(ours: str, theirs: str, fits: bool) -> None:
    def less(number: str) -> str:
        return f'R.subtract(x, R.const({number}, "float32"))'

    texts = [
        f"""
@script.function
def main(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return {body}
"""
        for body in (less(ours), "R.exp(x)")
    ]
    before, after = (parse(t).graph_functions()["main"] for t in texts)
    step = Rewrite((RewriteRule("less", before, after),))
    assert applies(step, "x: f32[Tensor, 4]", less(theirs)) == fits
