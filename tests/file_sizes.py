"""Print the table of file sizes, so that a change shows what it did to them."""

from __future__ import annotations

from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
FOLDERS = ["unity", "script", "transform", "codegen", "tests", "tutorials"]


def main() -> None:
    """One line a folder: files, lines, median and the longest file."""
    print(f"{'folder':24}{'files':>6}{'lines':>8}{'median':>8}  longest")
    for folder in FOLDERS:
        rows: dict[str, list[tuple[int, str]]] = {}
        for file in sorted((ROOT / folder).rglob("*.py")):
            if any(part.is_symlink() for part in file.parents):
                continue
            parts = file.relative_to(ROOT).parts
            room = "/".join(parts[:2]) if len(parts) > 2 else folder
            rows.setdefault(room, []).append((len(file.read_text().splitlines()), file.name))
        for room, files in rows.items():
            lines = [n for n, _ in files]
            longest = max(files)
            print(
                f"{room:24}{len(files):6}{sum(lines):8}{int(median(lines)):8}"
                f"  {longest[1]} {longest[0]}"
            )


if __name__ == "__main__":
    main()
