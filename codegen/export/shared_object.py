"""A program as a shared library and a header for C: compiled once more, linked by the system."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from unity.codegen.dlpack import type_word
from unity.codegen.llvm.machine import compile_text
from unity.codegen.vm.native.body import run_text
from unity.codegen.vm.native.late import late_text
from unity.codegen.vm.native.layout import Layout
from unity.codegen.vm.native.module import kernel_declarations, native_layouts, plan_text
from unity.errors import UnityError, UnsupportedError
from unity.runtime import bytecode as bc
from unity.runtime.artifact.replacing import replacing
from unity.runtime.host import host_triple
from unity.runtime.image import Image

from .constants import constant_places, write_constants
from .entry import entry_text
from .header import header_text
from .messages import Messages, messages_text
from .names import name_gaps, prefix_of
from .prelude import prelude

_LINKERS = ("cc", "gcc", "clang")


def export_library(image: Image, path: Path, threads: int) -> Path:
    """Write a shared library, and beside it the header.

    Args:
        image: The executable.
        path: The library, ``libNAME.so``; functions are called ``NAME_function``.
        threads: How many threads it uses until it is told otherwise.

    Returns:
        The header, ``NAME.h``. Both take the place of older ones at once.

    Raises:
        UnsupportedError: The program does what C can't be given; all is listed.
        UnityError: There is no linker, or it fails.
    """
    if "linux" not in image.target.triple:
        raise UnsupportedError(f"libraries are exported for Linux alone, not {image.target.triple}")
    prefix = prefix_of(path)
    layouts = _layouts(image, prefix)
    header = path.with_name(f"{prefix}.h")
    linker = _linker(image.target.triple)
    text = _module(image, prefix, layouts, threads)
    told = header_text(prefix, [*layouts.values()], image.target, threads)
    entries = compile_text(text, image.target, "short").object
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_constants(image.constants, entries, folder / "constants.o")
            objects = [*image.objects, image.pool, entries]
            made = _link(linker, objects, prefix, folder)
            # Beside, then in place: a process that has the old library loaded keeps it.
            with open(made, "rb") as new, replacing(path) as file, replacing(header) as text_file:
                shutil.copyfileobj(new, file)
                text_file.write(told.encode())
    except OSError as error:
        what = error.filename2 or error.filename or path
        raise UnityError(f"can't write {what}: {error.strerror or error}") from error
    return header


def _layouts(image: Image, prefix: str) -> dict[int, Layout]:
    """How the functions keep their tensors, by index.

    Raises:
        UnsupportedError: One can't be exported.
    """
    found: dict[int, Layout] = {}
    gaps = [f"it calls the library function {symbol}" for symbol in image.symbols]
    gaps += [f"{code.name} is computed by the engine {code.engine}" for code in image.engines]
    plans = native_layouts(image.program, alone=True)
    for index, code in enumerate(image.program.functions):
        if "." in code.name:
            continue  # a closure
        if index in plans.why_not:
            gaps.append(f"{code.name} is not native code: {plans.why_not[index]}")
            continue
        layout = plans.native[index]
        if any(isinstance(i, bc.Print) for i in layout.code.code):
            gaps.append(f"{code.name} prints, which Python does")
            continue
        if layout.late_outputs:
            gaps.append(f"{code.name} has results whose sizes depend on data")
            continue
        gaps += [f"{code.name}: {gap}" for gap in _gaps(layout)]
        found[index] = layout
    gaps += [
        f"{layout.code.name} takes or gives strings or maps"
        for layout in found.values()
        if layout.code.forms
    ]
    gaps += name_gaps(prefix, [layout.code.name for layout in found.values()])
    if gaps:
        raise UnsupportedError("the program can't be exported as a library for C", gaps)
    return found


def _gaps(layout: Layout) -> list[str]:
    gaps: list[str] = []
    if any(
        isinstance(s, bc.ObjectSpec) for s in (*layout.inputs, *bc.leaf_specs(layout.code.result))
    ):
        gaps.append("it takes or gives objects of Python")
    for spec in (*layout.inputs, *layout.outputs):
        if isinstance(spec, bc.TensorSpec) and (
            spec.dtype is None or type_word(spec.dtype) is None
        ):
            gaps.append(f"DLPack has no {spec.dtype} of a byte an element")
    return list(dict.fromkeys(gaps))


def _module(image: Image, prefix: str, layouts: dict[int, Layout], threads: int) -> str:
    program, messages = image.program, Messages()
    kernels: set[str] = set()
    parts: list[str] = []
    for index, layout in layouts.items():
        parts += [plan_text(index, layout), run_text(index, layout, program, kernels, layouts)]
        parts.append(entry_text(prefix, index, layout, messages))
    tiles = any(f.startswith("amx-") for f in image.target.features)
    head = prelude(prefix, threads, constant_places(image.constants), tiles)
    late = [late_text()] if any(layout.late for layout in layouts.values()) else []
    declared = kernel_declarations(program, kernels)
    return "\n".join([head, *late, *declared, *parts, messages_text(prefix, messages)])


def _linker(triple: str) -> str:
    """This system's linker, or one that links for another processor, as distributions name them."""
    arch, here = triple.partition("-")[0], host_triple().partition("-")[0]
    cross = [f"{arch}-linux-gnu-gcc", f"{triple}-gcc", f"{triple}-cc"]
    names = _LINKERS if arch == here else cross
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        other = "" if arch == here else f" for {arch}"
        raise UnityError(
            f"no linker{other} was found (looked for {', '.join(names)})",
            hint=f"install a C compiler{other}; exe.save(path) and unity.load(path) need none",
        )
    return found


def _link(linker: str, objects: Sequence[bytes], prefix: str, folder: Path) -> Path:
    """Link objects and ``constants.o``, which lies in the folder.

    Nothing is shown but the functions of C: two libraries in a process don't meet. It stays loaded
    for good, since threads run in it.
    """
    files = [str(folder / "constants.o")]
    for i, data in enumerate(objects):
        (folder / f"{i}.o").write_bytes(data)
        files.append(str(folder / f"{i}.o"))
    (folder / "exports").write_text(f"{{ global: {prefix}_*; local: *; }};\n")
    made = folder / "library.so"
    done = subprocess.run(
        [
            linker, "-shared", "-pthread", "-o", str(made), *files,
            f"-Wl,--version-script={folder / 'exports'}", "-Wl,--no-undefined", "-Wl,-z,nodelete",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise UnityError(f"{linker} can't link the library: {last}")
    return made
