"""Whether a file is as somebody wrote it who has a key: BLAKE2b with that key (RFC 7693).

The code stands at a fixed place in the header, so that it can be checked before anything is parsed,
and is of all other bytes of the file: the header, every piece, the gaps between them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from unity.errors import UnityError

FIELD = "mac"
"""The first field of the metadata of a file that was written with a key."""
_BYTES = 32
UNKNOWN = "0" * (2 * _BYTES)
"""What stands in the place of the code while it is computed."""
_BEFORE = f'{{"__metadata__": {{"{FIELD}": "'.encode()
_PLACE = 8 + len(_BEFORE)
_SHORTEST_KEY = 16


def checked_key(key: object) -> bytes:
    """The key, if it is one.

    Raises:
        UnityError: It is no bytes, or too short to be kept from guessing.
    """
    if not isinstance(key, bytes) or len(key) < _SHORTEST_KEY:
        got = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise UnityError(
            f"a key is at least {_SHORTEST_KEY} bytes, got {got}",
            hint="secrets.token_bytes(32) makes one",
        )
    return key


def signed(header: bytes, key: bytes, following: Iterable[bytes | memoryview]) -> bytes:
    """A header with its code in it.

    Args:
        header: The header behind its length, which has `UNKNOWN` for the code.
        key: From `checked_key`.
        following: What follows it in the file.
    """
    assert header.startswith(_BEFORE + UNKNOWN.encode())
    length = len(header).to_bytes(8, "little")
    code = _code(key, [length, header, *following])
    end = len(_BEFORE) + len(code)
    return _BEFORE + code + header[end:]


def is_signed(mapped: memoryview) -> bool:
    """Whether a file was written with a key."""
    return bytes(mapped[8:_PLACE]) == _BEFORE


def check_signature(mapped: memoryview, key: bytes, where: str) -> None:
    """See whether a file was written with a key, and is as it was written.

    Raises:
        UnityError: It was written without one or with another, or was changed.
    """
    if not is_signed(mapped):
        raise UnityError(
            f"{where} was written without a key",
            hint="executable.save(path, key=...) writes one with it",
        )
    end = _PLACE + len(UNKNOWN)
    found = _code(key, [mapped[:_PLACE], UNKNOWN.encode(), mapped[end:]])
    if not hmac.compare_digest(found, bytes(mapped[_PLACE:end])):
        raise UnityError(
            f"{where} was written with another key, or changed since",
            hint="do not load it without the key: get it again from whom it comes",
        )


def _code(key: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """The code of some bytes, as hexadecimal digits."""
    if len(key) > hashlib.blake2b.MAX_KEY_SIZE:
        key = hashlib.blake2b(key).digest()
    digest = hashlib.blake2b(key=key, digest_size=_BYTES)
    for part in parts:
        digest.update(part)
    return digest.hexdigest().encode()
