"""Random programs over images: branches, parts of channels, wholes, sizes changed; compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.script import parse

Floats = npt.NDArray[np.float32]


class Images:
    """A random program over images ``(1, c, 6, 8)``; every value is one."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.constants: dict[str, Floats] = {}
        self.values: list[tuple[str, int]] = [("x", 16)]
        for _ in range(3):
            self.convolution()
        for _ in range(12):
            self.step()
        name, channels = self.values[-1]
        self.apply(
            f"R.concat(({name}, {self.values[-2][0]}), axis=1)", channels + self.values[-2][1]
        )
        self.convolution(self.values[-1])

    def apply(self, text: str, channels: int) -> None:
        self.lines.append(f"v{len(self.lines)} = {text}")
        self.values.append((f"v{len(self.lines) - 1}", channels))

    def pick(self) -> tuple[str, int]:
        return self.values[int(self.rng.integers(max(0, len(self.values) - 6), len(self.values)))]

    def constant(self, *shape: int) -> str:
        name = f"c{len(self.constants)}"
        scale = np.float32(1 / np.sqrt(np.prod(shape[1:])))
        self.constants[name] = self.rng.standard_normal(shape, np.float32) * scale
        return f'R.const("{name}")'

    def convolution(self, given: tuple[str, int] | None = None) -> None:
        name, channels = given or self.pick()
        outputs, taps = int(self.rng.choice([16, 24, 32, 48])), int(self.rng.choice([1, 1, 3]))
        weight = self.constant(outputs, channels, taps, taps)
        self.apply(f"R.nn.conv2d({name}, {weight}, padding={taps // 2})", outputs)
        if self.rng.random() < 0.6:
            self.apply(f"R.nn.relu({self.values[-1][0]})", outputs)

    def step(self) -> None:
        name, channels = self.pick()
        match int(self.rng.integers(8)):
            case 0 | 1 | 2:
                self.convolution()
            case 3:
                other, more = self.pick()
                if channels + more <= 96:
                    self.apply(f"R.concat(({name}, {other}), axis=1)", channels + more)
            case 4:
                begin = int(self.rng.choice([0, 16, 8]))
                end = int(self.rng.choice([channels, 16, 32, 24]))
                if begin < end <= channels:
                    part = f"R.strided_slice({name}, axes=(1,), begin=({begin},), end=({end},))"
                    self.apply(part, end - begin)
            case 5:
                self.apply(f"R.nn.max_pool2d({name}, 3, 1, padding=1)", channels)
            case 6:
                same = [v for v, c in self.values if c == channels]
                other = same[int(self.rng.integers(len(same)))]
                self.apply(f"R.add({name}, {other})", channels)
            case _:
                index = tuple(sorted(int(i) for i in self.rng.integers(0, 6, 6)))
                taken = f'R.take({name}, R.const({list(index)}, "int64"), axis=2)'
                self.apply(f"R.multiply({taken}, {self.constant(6, 1)})", channels)

    def module(self) -> IRModule:
        body = "\n        ".join(self.lines)
        return parse(
            f"""
@script.function
def main(x: f32[Tensor, 1, 16, 6, 8]) -> f32[Tensor, ...]:
    with R.dataflow():
        {body}
    return {self.values[-1][0]}
""",
            self.constants,
        )


@pytest.mark.rotated(3)
@pytest.mark.parametrize("seed", range(5))
def test_random_programs_over_images(seed: int) -> None:
    module = Images(seed).module()
    x = np.random.default_rng(seed).standard_normal((1, 16, 6, 8), np.float32)
    want = np.asarray(interpret(module, "main", [x]))
    got = unity.compile(module, threads=1 + seed % 2)(x)
    assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()
