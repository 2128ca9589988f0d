"""Compile the digits model, classify images it has never seen, and say how well and how fast."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console

from unity.compiler import compile as unity_compile
from unity.compiler import load
from unity.ir.dtype import Array
from unity.script import show as show_module

FOLDER = Path(__file__).parent
SHADES = " .:-=+*#%@"


def run_demo(show: bool) -> None:
    """Run it; with `show`, print the program as imported and the kernels it became."""
    console = Console(highlight=False)
    start = time.perf_counter()
    module = load(FOLDER / "digits.onnx")
    imported = time.perf_counter()
    executable = unity_compile(module)
    compiled = time.perf_counter()
    if show:
        console.rule("the graph, as imported")
        show_module(module)
        console.rule("the program and its kernels, compiled")
        print(executable.ir())
    with np.load(FOLDER / "digits.npz") as held_out:
        images, labels = held_out["images"], held_out["labels"]
    for image in images[:4]:
        guess = int(np.argmax(executable(image[None])))
        console.print(picture(image[0]))
        console.print(f"  looks like a {guess}\n")
    accuracy = float((np.argmax(executable(images), axis=1) == labels).mean())
    console.print(
        f"imported in {imported - start:.2f} s, compiled in {compiled - imported:.2f} s "
        f"(one executable for every batch size)"
    )
    console.print(f"accuracy on {len(labels)} images the training never saw: {accuracy:.2%}")
    for batch in (1, len(images)):
        console.print(f"batch {batch:3}: {latency(executable, images[:batch]):8.1f} us a call")


def picture(image: Array) -> str:
    """An 8x8 image of values 0..1 as text."""
    rows = (np.clip(image.astype(np.float32), 0, 1) * (len(SHADES) - 1)).astype(int)
    return "\n".join("  " + "".join(SHADES[v] * 2 for v in row) for row in rows)


def latency(executable: object, images: Array) -> float:
    """The median time of a call in microseconds."""
    assert callable(executable)
    times: list[float] = []
    for _ in range(200):
        start = time.perf_counter()
        executable(images)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e6
