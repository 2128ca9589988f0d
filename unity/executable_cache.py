"""Executables that were compiled before, found by the bytes of a model and all that was asked for.

What compiling gives depends on the model's file, the files that it names, the options, the target,
and the compiler with the packages that it computes with. A key names all of them, so an executable
that is found is the one that compiling would give; the compiler is not even imported. It is kept as
an artifact (`unity.runtime.artifact`), folded and packed constants included. What only the compiler
can tell of it (IR, assembly, schedules) is compiled again when it is asked for.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from unity.codegen.llvm.cache import ObjectCache, key_of
from unity.codegen.llvm.host import host_target
from unity.codegen.sources import compiler_digest
from unity.errors import UnityError
from unity.ir.arrays.aligned import HUGE_PAGE, paged_copy
from unity.ir.arrays.mapped import owner_of
from unity.ir.dtype import Array
from unity.machine.changed import INTRINSICS, OPERATORS, is_changed
from unity.machine.target import Target
from unity.runtime.artifact.naming import SUFFIX
from unity.runtime.artifact.read import read_own
from unity.runtime.executable import Executable
from unity.runtime.image import Image
from unity.runtime.instantiate import instantiate
from unity.runtime.linking.foreign_library import digest_of

if TYPE_CHECKING:  # what only the compiler has, told to type checkers alone
    from unity.ir.stmt import PrimFunc
    from unity.runtime.listings import Changes
    from unity.transform.rules.decisions import AppliedRule
    from unity.transform.schedule.schedule import Schedule

FOLDER = "executables"
LIMIT = 2 << 30
"""Bytes that all of them may take."""
LARGEST = LIMIT // 4
"""Bytes of constants that one may have."""
_KIND = "cpu"


@dataclass(frozen=True, slots=True)
class Wanted:
    """An executable that is asked for.

    Attributes:
        path: The model's file.
        contents: The digest of it.
        options: All that is asked for.
        asked: The same as text.
        key: What the executable depends on, but for the files that the model names.
        folder: The folder of all caches.
    """

    path: Path
    contents: str
    options: Mapping[str, object]
    asked: str
    key: str
    folder: Path

    @classmethod
    def of(
        cls,
        model: object,
        target: str | Target,
        threads: int | None,
        options: Mapping[str, object],
        folder: Path,
    ) -> Wanted | None:
        """What is asked for; None where its parts can't all be named: it is compiled then.

        Args:
            model: The path of a model; of anything else nothing is kept.
            target: As `unity.compile` takes it.
            threads: As `unity.compile` takes it.
            options: All that was asked for, by name.
            folder: The folder of all caches.
        """
        if not isinstance(model, str | Path) or is_changed(_KIND, INTRINSICS, OPERATORS):
            return None
        if isinstance(target, str):
            if target != _KIND or (threads is not None and threads < 1):
                return None
            target = host_target(threads)
        path, asked = Path(model), _text(options)
        if target.kind != _KIND or asked is None or not _is_small([path]):
            return None
        contents = digest_of(path)
        parts = ("executable 1", compiler_digest(), repr(target), asked, path.name, contents)
        return cls(path, contents, options, asked, key_of(*parts), folder) if contents else None

    def found(self, compiled: Callable[[], Executable]) -> Executable | None:
        """The executable; None if there is none, or it is damaged.

        Args:
            compiled: Compiles it, for what only the compiler can tell.
        """
        listed = self._lists.get(self.key)
        names = None if listed is None else tuple(map(str, json.loads(listed)))
        place = None if names is None else self._place(names)
        if names is None or place is None or not place.is_file():
            return None
        try:
            image = _in_memory(read_own(place))
            made = instantiate(image, listings=_Later(self, names, place, compiled))
        except (UnityError, RuntimeError):  # of what reads files, and of the linker
            return None
        with suppress(OSError):
            os.utime(place)  # what is used stays
        return made

    def made(self, compiled: Callable[[], Executable]) -> Executable:
        """The executable compiled, and kept if it is of an ONNX model and not too large.

        The files are looked at before and after: what was written to meanwhile is not kept.
        """
        # Compiling needs all of this.
        from unity.frontend.onnx.reading.external import external_files
        from unity.frontend.relay import is_relay

        names = None if is_relay(self.path) else external_files(self.path)
        place = None if names is None else self._place(names)
        executable = compiled()
        size = sum(c.nbytes for c in executable.constants)
        if names is None or place is None or size > LARGEST or not self._lists.is_safe():
            return executable
        if not self.stands(names, place):
            return executable
        with suppress(OSError, UnityError):  # no room for it, or it calls what has no name
            place.parent.mkdir(parents=True, exist_ok=True)
            executable.store(place)
            self._lists.put(self.key, json.dumps(names).encode())
            self._lists.trim()
            self._artifacts.trim()
        return executable

    def stands(self, names: Sequence[str], place: Path) -> bool:
        """Whether the model is still what it was, with the files that it names."""
        same = digest_of(self.path) == self.contents and _text(self.options) == self.asked
        return same and self._place(names) == place

    @property
    def _lists(self) -> ObjectCache:
        return ObjectCache(self.folder / FOLDER, suffix=".json")

    @property
    def _artifacts(self) -> ObjectCache:
        return ObjectCache(self.folder / FOLDER, LIMIT, SUFFIX)

    def _place(self, names: Sequence[str]) -> Path | None:
        """Where the executable is kept, given the files that the model names; None for nowhere."""
        files = [self.path.parent / name for name in names]
        if not _is_small([self.path, *files]):
            return None
        digests = [digest_of(file) for file in files]
        return self._artifacts.place(key_of(self.key, *names, *digests)) if all(digests) else None


@dataclass(slots=True)
class _Later:
    """What only the compiler can tell of an executable that was found: it is compiled for that."""

    wanted: Wanted
    names: Sequence[str]
    place: Path
    compiled: Callable[[], Executable]
    made: Executable | None = None

    def _whole(self) -> Executable:
        if self.made is None:
            if not self.wanted.stands(self.names, self.place):
                raise UnityError(
                    f"{self.wanted.path} is gone or another since it was compiled, and what is "
                    "asked for is not kept",
                    hint="compile it again to see its kernels: TensorIR, LLVM, assembly",
                )
            self.made = self.compiled()
        return self.made

    def ir(self, kernel: str | None = None) -> str:
        """The lowered module, or one kernel of it, in the language."""
        return self._whole().ir(kernel)

    def llvm(self, kernel: str | None = None) -> str:
        """LLVM IR."""
        return self._whole().llvm(kernel)

    def asm(self, kernel: str | None = None) -> str:
        """Assembly."""
        return self._whole().asm(kernel)

    def kernel(self, kernel: str) -> PrimFunc:
        """A kernel before it is laid out."""
        return self._whole().kernel(kernel)

    def schedule(self, kernel: str, decisions: Changes | None) -> Schedule:
        """What the default rules do to it."""
        return self._whole().schedule(kernel, decisions)

    def rules(self, kernel: str, decisions: Changes | None) -> tuple[AppliedRule, ...]:
        """Which of them take which of its blocks."""
        return self._whole().rules(kernel, decisions)

    def export_library(self, image: Image, path: Path, threads: int) -> Path:
        """A shared library and a header for C; where the header is."""
        from unity.codegen import export  # the linker of the system

        return export.export_library(image, path, threads)


def _in_memory(image: Image) -> Image:
    """The image with its large constants out of the file, whose pages are small.

    What was read of the file, to check it and to copy them, is let go.
    """
    made = replace(image, constants=[_placed(c) for c in image.constants])
    files = {id(o): o for o in map(owner_of, image.constants) if isinstance(o, mmap.mmap)}
    for file in files.values() if hasattr(mmap, "MADV_DONTNEED") else ():
        file.madvise(mmap.MADV_DONTNEED)
    return made


def _placed(data: Array) -> Array:
    if data.nbytes < HUGE_PAGE:
        return data
    made = paged_copy(data)
    made.flags.writeable = False
    return made


def _is_small(files: Sequence[Path]) -> bool:
    """Whether files are there, and together so small that an executable of them is kept."""
    try:
        return all(f.is_file() for f in files) and sum(f.stat().st_size for f in files) <= LARGEST
    except (OSError, ValueError):  # a ValueError: a path that no file can have
        return False


def _text(value: object) -> str | None:
    """An option as text that tells all of it, a file's contents too; None if there is none."""
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if isinstance(value, Path):
        return digest_of(value) or None
    if not isinstance(value, Mapping):
        return None
    entries = cast("Mapping[object, object]", value).items()
    told = [(_text(key), _text(of)) for key, of in entries]
    if any(key is None or of is None for key, of in told):
        return None
    return f"{{{', '.join(sorted(f'{key}: {of}' for key, of in told))}}}"
