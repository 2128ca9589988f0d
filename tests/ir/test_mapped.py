"""Mapped arrays: read-only views of a file, evicted when asked, refused when the file changed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from unity.errors import UnityError
from unity.ir.arrays.mapped import MappedFile, evict, map_file, owner_of, require_unchanged

MIB = 1 << 20


def stored(folder: Path, count: int = 3000) -> Path:
    path = folder / "data.bin"
    path.write_bytes(b"odd" + np.arange(count, dtype=np.float32).tobytes())
    return path


def test_an_array_is_a_read_only_view_of_the_file(tmp_path: Path) -> None:
    array = map_file(stored(tmp_path)).array(np.float32, (30, 100), 3)
    np.testing.assert_array_equal(array, np.arange(3000, dtype=np.float32).reshape(30, 100))
    assert not array.flags.writeable
    assert isinstance(owner_of(array[1:].T), MappedFile)
    assert not isinstance(owner_of(array.copy()), MappedFile)


def test_what_was_evicted_is_read_again(tmp_path: Path) -> None:
    array = map_file(stored(tmp_path)).array(np.float32, (3000,), 3)
    for part in (array, array[::-1], array[5:6], array[:0], np.ones(3)):
        evict(part)
    np.testing.assert_array_equal(array, np.arange(3000))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_what_was_evicted_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(32 * MIB))
    array = map_file(path).array(np.uint8, (32 * MIB,))
    assert not array.any()
    full = file_bytes()
    evict(array[: 16 * MIB])
    half = file_bytes()
    evict(array)
    assert full - half > 15 * MIB
    assert half - file_bytes() > 15 * MIB


def file_bytes() -> int:
    """The bytes of files that are in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile"))


def test_a_file_that_was_written_to_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path)
    array = map_file(path).array(np.float32, (10,), 3)
    require_unchanged([array, np.ones(3)])
    with path.open("r+b") as file:
        file.seek(3)
        file.write(bytes(4))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))  # clocks of files are coarse
    with pytest.raises(UnityError, match=r"data\.bin was written to") as caught:
        require_unchanged([array])
    assert "load it again" in (caught.value.hint or "")


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path)
    array = map_file(path).array(np.float32, (10,), 3)
    os.truncate(path, 100)
    with pytest.raises(UnityError, match=r"data\.bin was written to"):
        require_unchanged([array])


def test_a_file_that_was_replaced_or_moved_stays_what_it_was(tmp_path: Path) -> None:
    path = stored(tmp_path)
    array = map_file(path).array(np.float32, (10,), 3)
    other = tmp_path / "other.bin"
    other.write_bytes(bytes(100))
    path.rename(tmp_path / "moved.bin")
    other.replace(path)
    require_unchanged([array])
    np.testing.assert_array_equal(array, np.arange(10))


def test_the_descriptor_is_closed_with_the_last_array(tmp_path: Path) -> None:
    array = map_file(stored(tmp_path)).array(np.float32, (10,), 3)
    owner = owner_of(array)
    assert isinstance(owner, MappedFile)
    descriptor = owner.descriptor
    os.fstat(descriptor)
    del array, owner
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
