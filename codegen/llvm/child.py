"""Compiling in a child process: LLVM ends the process on code that a target cannot express.

Run as ``python -m unity.codegen.llvm.child``: a JSON line with the target, then the module's text
on standard input; the object's bytes on standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from typing import cast

from unity.errors import UnsupportedError
from unity.machine.target import Target

from .machine import Level, compile_text

_TIMEOUT = 300.0


def compile_in_child(text: str, target: Target, level: Level) -> bytes:
    """The object of a module's text.

    Raises:
        UnsupportedError: LLVM could not generate code for the target.
    """
    fields = asdict(target)
    del fields["machine"], fields["scopes"]  # what schedules look at decides nothing any more
    request = json.dumps({"target": fields, "level": level}) + "\n" + text
    done = subprocess.run(
        [sys.executable, "-m", "unity.codegen.llvm.child"],
        input=request.encode(),
        capture_output=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        error = done.stderr.decode(errors="replace").strip().splitlines()
        raise UnsupportedError(
            f"LLVM cannot generate this code for {target.triple} ({target.cpu})", error[-3:]
        )
    return done.stdout


def _main() -> None:
    header, _, text = sys.stdin.buffer.read().decode().partition("\n")
    request = json.loads(header)
    fields = request["target"]
    fields["features"] = tuple(fields["features"])
    level = cast("Level", request["level"])
    try:
        compiled = compile_text(text, Target(**fields), level)
    except RuntimeError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(compiled.object)


if __name__ == "__main__":
    _main()
