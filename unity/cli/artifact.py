"""What an executable's file holds, without running any of it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unity.runtime.artifact.manifest import Manifest
from unity.runtime.artifact.read import read_manifest

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
    """Print the manifest: what it is, for which machine, what it needs, how large its parts are."""
    manifest = read_manifest(path)
    table = Table("what", "in it", show_header=False)
    for what, text in _rows(manifest):
        table.add_row(what, escape(text))
    Console(highlight=False).print(table)


def _rows(manifest: Manifest) -> list[tuple[str, str]]:
    target = manifest.target
    rows = [
        ("function", manifest.signature),
        ("made by", f"unity {manifest.unity}"),
        ("for", f"{target.triple}, {target.cpu}"),
        ("features", ", ".join(target.features) or "none"),
        ("options", ", ".join(f"{k}={v}" for k, v in manifest.options)),
        ("libraries", ", ".join(record.name for record in manifest.libraries) or "none"),
        ("engines", ", ".join(sorted({e.engine for e in manifest.engines})) or "none"),
    ]
    sizes: dict[str, int] = {}
    for piece in manifest.pieces:
        part = piece.name.partition("/")[0]
        sizes[part] = sizes.get(part, 0) + piece.bytes
    return rows + [(_PARTS[k], f"{n:,} bytes") for k, n in sizes.items() if n]
