"""Files that take another's place at once: who has the old one mapped keeps it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file that takes the place of another when all is written.

    Args:
        path: The other.
        durable: Whether it is on the disk first. Else, if the machine stops, what is there may be
            neither: for what is checked when it is read, and can be made anew.
    """
    beside = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename == str(beside):
            error.filename = str(path)  # what the user named
        with suppress(OSError):
            beside.unlink()
        raise
