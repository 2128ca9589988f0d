"""A digest of the compiler's own source: what it made once holds as long as it is the same."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from unity import errors


@lru_cache(maxsize=1)
def source_digest() -> str:
    """The digest of every file of Unity's, by path and contents.

    Contents and not dates: an installation may give every file the same date.
    """
    root = Path(errors.__file__).parent
    places = [root, *(f.resolve() for f in sorted(root.iterdir()) if f.is_symlink())]
    digest = hashlib.sha256()
    for place in places:
        for file in sorted(place.rglob("*.py")):
            body = file.read_bytes()
            digest.update(f"{file.relative_to(place)} {len(body)} ".encode())
            digest.update(body)
    return digest.hexdigest()
