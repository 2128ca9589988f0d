"""`unity compile`: what compiling a model gives, as a report, as text files, as an executable."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from unity.runtime.artifact.naming import SUFFIX
from unity.runtime.executable import Executable

from .options import Options
from .source import compiled, only_models


def compile_model(
    model: Path,
    output: Path | None,
    options: Options,
) -> None:
    """Compile and report; write the executable, a library for C, or texts into a folder."""
    only_models(model, "compile")
    console = Console(highlight=False)
    executable, took = compiled(model, console, options)
    console.print(took)
    console.print(str(executable), markup=False, soft_wrap=True)
    constants = sum(c.nbytes for c in executable.constants)
    console.print(f"constants: {constants / 1e6:.2f} MB")
    if output is None:
        return
    if output.suffix == SUFFIX:
        executable.save(output)
        console.print(f"wrote {output}: {output.stat().st_size / 1e6:.2f} MB")
    elif output.suffix == ".so":
        header = executable.export_library(output)
        console.print(f"wrote {output}: {output.stat().st_size / 1e6:.2f} MB, and {header}")
    else:
        _write_texts(executable, output, console)


def _write_texts(executable: Executable, output: Path, console: Console) -> None:
    output.mkdir(parents=True, exist_ok=True)
    texts = {
        "ir.py": executable.ir(),
        "kernels.ll": executable.llvm(),
        "kernels.s": executable.asm(),
    }
    for name, text in texts.items():
        (output / name).write_text(text)
        console.print(f"wrote {output / name}: {len(text.splitlines())} lines")
