"""The layout of DESIGN.md section 3: links are folders, imports stay where they belong."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ["script", "transform", "codegen"]
NAMELESS = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def sources() -> Iterator[Path]:
    for folder in [*FOLDERS, "unity"]:
        for file in (ROOT / folder).rglob("*.py"):
            if not any(part.is_symlink() for part in file.parents):
                yield file


@pytest.mark.parametrize("folder", FOLDERS)
def test_unity_holds_the_folder(folder: str) -> None:
    inside, beside = ROOT / "unity" / folder, ROOT / folder
    assert inside.is_dir(), f"{inside} is no folder: clone with `git -c core.symlinks=true`"
    assert inside.samefile(beside)


def test_relative_imports_stay_inside_their_folder() -> None:
    escapes: list[str] = []
    for file in sources():
        root = file.relative_to(ROOT).parts[0]
        depth = len(file.relative_to(ROOT / root).parts) - 1 + (root != "unity")
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ImportFrom) and node.level > depth:
                escapes.append(f"{file}:{node.lineno}")
    assert escapes == []


def test_nothing_imports_a_folder_by_its_bare_name() -> None:
    for file in sources():
        for node in ast.walk(tree_of(file)):
            match node:
                case ast.Import():
                    names = [alias.name for alias in node.names]
                case ast.ImportFrom(level=0, module=str(module)):
                    names = [module]
                case _:
                    continue
            assert not [n for n in names if n.split(".")[0] in FOLDERS], file
    assert not {*FOLDERS} & sys.modules.keys()


def test_every_file_has_a_name_that_says_what_it_holds() -> None:
    assert [f for f in sources() if f.name in NAMELESS] == []


def test_files_stay_small() -> None:
    lines = sorted(len(f.read_text().splitlines()) for f in sources())
    assert lines[-1] <= 600
    assert lines[len(lines) // 2] <= 180


def test_folders_stay_small() -> None:
    files = Counter(f.parent.relative_to(ROOT).as_posix() for f in sources())
    assert [(d, n) for d, n in files.items() if n > 25] == []


def test_no_name_of_a_lazy_package_is_one_of_its_files() -> None:
    """Importing the file would put it in the name's place."""
    for file in sources():
        if file.name != "__init__.py" or " = exports(" not in file.read_text():
            continue
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = node.value if node.value.isidentifier() else "-"
                assert not (file.parent / f"{name}.py").exists(), f"{file}: {name}"
