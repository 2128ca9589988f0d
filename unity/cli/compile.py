"""`unity compile`: what compiling a model gives, as a report and as text files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from unity.transform import Precision

from .run import compiled


def compile_model(
    model: Path, output: Path | None, threads: int | None, precision: Precision = "f32"
) -> None:
    """Compile and report; write the generated text into the folder `output`."""
    console = Console(highlight=False)
    executable, imported, took = compiled(model, threads, console, precision)
    console.print(f"imported in {imported:.2f} s, compiled in {took:.2f} s")
    console.print(str(executable), markup=False, soft_wrap=True)
    constants = sum(c.nbytes for c in executable.constants)
    console.print(f"constants: {constants / 1e6:.2f} MB")
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    texts = {
        "ir.py": executable.ir(),
        "kernels.ll": executable.llvm(),
        "kernels.s": executable.asm(),
    }
    for name, text in texts.items():
        (output / name).write_text(text)
        console.print(f"wrote {output / name}: {len(text.splitlines())} lines")
