"""What an executable's file holds, without running any of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unity.runtime.artifact.read import Contents, read_contents
from unity.runtime.linking.foreign_library import LibraryRecord
from unity.runtime.signature import function_text

_PARTS = {
    "constant": "constants",
    "object": "code of kernels",
    "native": "code of functions",
    "pool": "code of the thread pool",
    "library": "code beside libraries",
    "engine": "what engines compiled",
    "program": "bytecode",
    "explanation": "explanation",
}


def show_artifact(path: Path) -> None:
    """Print what it is, for which machine, what it calls, and how large its parts are."""
    table = Table("what", "in it", show_header=False)
    for what, text in _rows(read_contents(path)):
        table.add_row(what, escape(_visible(text)))
    Console(highlight=False).print(table)


def _rows(contents: Contents) -> list[tuple[str, str]]:
    manifest, target = contents.manifest, contents.manifest.target
    rows = [
        *(("function", function_text(code)) for code in contents.program.functions),
        ("made by", f"unity {manifest.unity}, {'with' if contents.signed else 'without'} a key"),
        ("for", f"{target.triple}, {target.cpu}"),
        ("features", _listed(target.features)),
        ("options", ", ".join(f"{k}={v}" for k, v in manifest.options)),
        ("python", _listed(str(record) for record in manifest.hosts)),
        ("libraries", _listed(_library_text(record) for record in manifest.libraries)),
        ("symbols", _listed(manifest.symbols)),
        ("engines", _listed(sorted({e.engine for e in manifest.engines}))),
    ]
    sizes: dict[str, int] = {}
    for piece in manifest.pieces:
        part = piece.name.partition("/")[0]
        sizes[part] = sizes.get(part, 0) + piece.bytes
    return rows + [(_PARTS[k], f"{n:,} bytes") for k, n in sizes.items() if n]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"


def _library_text(record: LibraryRecord) -> str:
    return record.name + (f" ({record.file})" if record.file else "")


def _visible(text: str) -> str:
    """A text of a file as a terminal may be shown it: it could hold what a terminal obeys."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
