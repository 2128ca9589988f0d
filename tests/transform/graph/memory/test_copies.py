"""Concatenations and slices without copies: the plan against numpy, and what it costs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.graph import MarkCopies, PlanMemory, peak_bytes

Floats = npt.NDArray[np.float32]
WIDTH = 16


class Program:
    """A random program over tensors ``(1, rows, 16)``, written down and computed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.x = self.rng.standard_normal((1, 16, WIDTH), np.float32)
        self.w = (self.rng.standard_normal((WIDTH, WIDTH)) / 4).astype(np.float32)
        self.lines: list[str] = []
        self.values: list[tuple[str, Floats]] = []
        self.apply("R.matmul(x, w)", self.x @ self.w)
        for _ in range(14):
            self.step()
        total = self.values[-1]
        for name, value in self.values[:-1]:
            if value.shape == total[1].shape and self.rng.random() < 0.5:
                total = self.apply(f"R.add({total[0]}, {name})", total[1] + value)
        self.out = self.apply(f"R.matmul({total[0]}, w)", total[1] @ self.w)

    def apply(self, text: str, value: Floats) -> tuple[str, Floats]:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, value.astype(np.float32)))
        return self.values[-1]

    def step(self) -> None:
        name, value = self.values[int(self.rng.integers(len(self.values)))]
        rows = value.shape[1]
        match int(self.rng.integers(6)):
            case 0:
                self.apply(f"R.matmul({name}, w)", value @ self.w)
            case 1:
                product = f"R.matmul({name}, w)"
                self.apply(f"R.nn.relu({product})", np.maximum(value @ self.w, 0))
            case 2 | 3:
                others = [self.values[int(i)] for i in self.rng.integers(len(self.values), size=2)]
                if rows + sum(v.shape[1] for _, v in others) > 300:
                    return
                names = ", ".join([name, *(n for n, _ in others)])
                joined = np.concatenate([value, *(v for _, v in others)], 1)
                self.apply(f"R.concat(({names}), axis=1)", joined)
            case 4:
                begin = int(self.rng.integers(rows))
                end = int(self.rng.integers(begin, rows)) + 1
                part = f"R.strided_slice({name}, axes=(1,), begin=({begin},), end=({end},))"
                self.apply(part, value[:, begin:end])
            case _:
                if rows % 2:
                    return
                both = f"v{len(self.lines)}"
                self.lines.append(f"{both} = R.split({name}, 2, axis=1)")
                self.values += [
                    (f"{both}[0]", value[:, : rows // 2]),
                    (f"{both}[1]", value[:, rows // 2 :]),
                ]

    def source(self) -> str:
        body = "\n        ".join(self.lines)
        shape = ", ".join(map(str, self.out[1].shape))
        return f"""
@script.function
def main(x: f32[Tensor, 1, 16, {WIDTH}], w: f32[Tensor, {WIDTH}, {WIDTH}]) -> f32[Tensor, {shape}]:
    with R.dataflow():
        {body}
    return {self.out[0]}
"""


def planned(source: str, without_copies: bool = True) -> IRModule:
    ctx = Context()
    before = pipeline("cpu").until(PlanMemory).run(parse(source), ctx)
    return PlanMemory(without_copies=without_copies)(before, ctx)


def calls(module: IRModule) -> int:
    """How many kernels run."""
    bindings = walk_bindings(module.graph_functions()["main"])
    return sum(
        isinstance(b.value, Call) and b.value.callee == Op("memory.call_kernel") for b in bindings
    )


@pytest.mark.rotated(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    program = Program(seed)
    source = program.source()
    exe = unity.compile(parse(source))
    got, want = exe(program.x, program.w), program.out[1]
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    plain = planned(source, without_copies=False).graph_functions()["main"]
    assert peak_bytes(planned(source).graph_functions()["main"], {}) <= peak_bytes(plain, {})


def test_programs_with_copies_left_out_are_among_them() -> None:
    """Else the test above would test nothing."""
    left_out = [
        calls(planned(p.source(), without_copies=False)) - calls(planned(p.source()))
        for p in map(Program, range(4))
    ]
    assert sum(left_out) >= 4


DENSE = """
@script.function
def main(x: f32[Tensor, {n}, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, {all}, 8]:
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.relu(R.matmul(a, w))
        c = R.concat((a, b))
        d = R.matmul(c, w)
        e = R.concat((c, d))
        out = R.matmul(e, w)
    return out
"""


def test_a_concatenation_of_concatenations_needs_the_last_one_only() -> None:
    """The arena is the last whole; both copies are gone."""
    source = DENSE.format(n=32, all=128)
    assert (calls(planned(source, without_copies=False)), calls(planned(source))) == (6, 4)
    main = planned(source).graph_functions()["main"]
    assert peak_bytes(main, {}) == 2 * 128 * 8 * 4  # and the result


def test_parts_off_the_cache_lines_are_copied() -> None:
    """33 rows of 32 bytes are no whole lines, 66 are."""
    source = DENSE.format(n=33, all=132)
    assert calls(planned(source)) == 5


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        ("R.concat((x, x), axis=1)", "32, 16"),
        ("R.strided_slice(x, axes=(1,), begin=(0,), end=(4,))", "32, 4"),
        ("R.strided_slice(x, axes=(0,), begin=(0,), end=(32,), strides=(2,))", "16, 8"),
        ("R.nn.relu(R.concat((x, x)))", "64, 8"),
        ("R.permute_dims(x, (1, 0))", "8, 32"),
    ],
)
def test_what_is_no_stretch_is_not_marked(call: str, shape: str) -> None:
    source = f"""
@script.function
def main(x: f32[Tensor, 32, 8]) -> f32[Tensor, {shape}]:
    return {call}
"""
    module = pipeline("cpu").until(MarkCopies).run(parse(source), Context())
    marked = MarkCopies()(module, Context())
    assert not any("copies" in f.attrs for f in marked.prim_funcs().values())


def test_both_halves_may_be_one_tensor() -> None:
    """It can't lie in two places: the copy stays."""
    source = """
@script.function
def main(x: f32[Tensor, 32, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, 64, 8]:
    with R.dataflow():
        a = R.matmul(x, w)
        out = R.matmul(R.concat((a, a)), w)
    return out
"""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((32, 8), np.float32), rng.standard_normal((8, 8), np.float32)
    a = x @ w
    got = unity.compile(parse(source))(x, w)
    assert np.abs(got - np.concatenate([a, a]) @ w).max() < 1e-4


@pytest.mark.parametrize(
    "body",
    [
        """
    a = R.nn.softmax(x, axis=1)
    b = R.nn.softmax(y, axis=1)
    z = R.concat((a, b), axis=0)
    u = R.nn.softmax(R.matmul(z, w), axis=1)
    o = R.add(z, a)
    return R.add(R.matmul(o, w), u)""",
        """
    z = R.nn.softmax(R.concat((x, y), axis=0), axis=1)
    a = R.strided_slice(z, axes=(0,), begin=(1,), end=(2,))
    u = R.nn.softmax(R.matmul(a, w), axis=1)
    q = R.nn.softmax(R.matmul(z, w), axis=1)
    o = R.add(z, a)
    return R.add(R.add(R.matmul(o, w), u), q)""",
    ],
)
def test_nothing_is_written_over_that_lies_in_another_input(body: str) -> None:
    module = parse(
        "@script.function\n"
        "def main(x: f32[Tensor, 1, 64], y: f32[Tensor, 7, 64], w: f32[Tensor, 64, 64])"
        f" -> f32[Tensor, 8, 64]:{body}\n"
    )
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype(np.float32) for s in ((1, 64), (7, 64), (64, 64))]
    expected = np.asarray(interpret(module, "main", args))
    np.testing.assert_allclose(unity.compile(module)(*args), expected, rtol=1e-4, atol=1e-5)
