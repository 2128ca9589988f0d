"""Runs what readers are shown, and checks what it says that it prints.

``python -m tests.run_examples tutorials/15_walk_the_compiler.py docs/guide/operators.md``: a
tutorial is run as it is; of a page, the fences of Python, one behind the other, are a program. A
line ``# -> text`` says that a line of the output holds that text, behind those that earlier ones
found.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_PROMISE = re.compile(r"^\s*# -> (.*)$", re.MULTILINE)
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run each file that is named; ends with 1 if one fails."""
    failed = [name for name in sys.argv[1:] if not _runs(Path(name))]
    raise SystemExit(f"failed: {', '.join(failed)}" if failed else 0)


def _runs(file: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        program = file
        if file.suffix == ".md":
            program = Path(folder) / f"{file.stem}.py"
            program.write_text(program_of(file.read_text()))
        done = subprocess.run(
            [sys.executable, str(program.resolve())],
            cwd=ROOT if program is file else folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        missing = list(unkept(program.read_text(), done.stdout))
    if done.returncode or missing:
        print(f"{done.stdout}{done.stderr}\n{file}: ends with {done.returncode}")
        for text in missing:
            print(f"{file}: no line, behind the ones before it, has {text!r}")
        return False
    print(f"-- {file}")
    return True


def program_of(page: str) -> str:
    """The program that the fences of a page are; its imports of the future come first."""
    return "from __future__ import annotations\n\n" + "\n".join(_FENCE.findall(page))


def unkept(program: str, output: str) -> Iterator[str]:
    """What a program says that it prints, and does not.

    >>> list(unkept("# -> a\\n# -> b", "so: b\\na"))
    ['b']
    """
    lines = iter(output.splitlines())
    for promise in _PROMISE.findall(program):
        if not any(promise in line for line in lines):
            yield promise


if __name__ == "__main__":
    main()
