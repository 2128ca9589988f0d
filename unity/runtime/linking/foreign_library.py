"""Shared libraries: where their files may lie, how their symbols are written, how many threads.

A library is loaded when something first needs it. One that runs threads of its own can be kept to
the calling thread (`ThreadControl`): its work is then shared out by our pool, like all other work.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

from unity.arguments import public_class
from unity.errors import UnityError
from unity.runtime.implementation import ImplementationError
from unity.runtime.linking import foreign
from unity.runtime.linking.link import Library, link

SERIAL_BEGIN, SERIAL_END = "serial_begin", "serial_end"
"""Functions that every library with a `ThreadControl` has besides its own."""


@dataclass(frozen=True, slots=True)
class ThreadControl:
    """How a library is told its number of threads: two functions of its own.

    Attributes:
        get: ``int get()``.
        set: ``void set(int)``.
    """

    get: str
    set: str


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """Files that an installed Python package brings.

    Attributes:
        package: Its import name.
        folder: A folder, seen from the package's own.
        pattern: What the files are called, as ``*`` means it.
    """

    package: str
    folder: str
    pattern: str

    def __str__(self) -> str:
        """Where that is, in words."""
        return f"{self.folder}/{self.pattern} of the package {self.package}"

    def paths(self) -> Iterator[Path]:
        """The files; none if the package is not installed."""
        spec = importlib.util.find_spec(self.package)
        if spec is not None and spec.origin is not None:
            yield from sorted((Path(spec.origin).parent / self.folder).glob(self.pattern))


Place: TypeAlias = "str | Path | PackageFiles"
"""Where a library may be: a path, a name that the system's linker knows, a package."""


@dataclass(frozen=True, slots=True)
class LibraryRecord:
    """A library as an artifact describes it: how it is called, and which file it was.

    Attributes:
        file: What its file is called; empty if the system's linker found it.
        digest: The file's BLAKE2b of 32 bytes, in hexadecimal digits. A file of that name beside
            the artifact is taken for the library if it is the same.
    """

    name: str
    forms: tuple[str, ...]
    threads: ThreadControl | None
    hint: str
    file: str = ""
    digest: str = ""


@public_class
@dataclass(slots=True)
class ForeignLibrary:
    """A shared library, registered with `register`.

    Attributes:
        name: What symbols begin with: ``name.function``.
        files: Where it may be found, best first; a function is called once, when it is needed.
        forms: How a function's symbol may be written, ``scipy_{}64_`` for instance.
        threads: How its threads are controlled; None if it has none.
        hint: How to get it, for the error.
        serial: The object code of its functions `SERIAL_BEGIN` and `SERIAL_END`.
    """

    name: str
    files: Callable[[], Iterable[str | Path]] | Sequence[Place]
    forms: tuple[str, ...] = ("{}",)
    threads: ThreadControl | None = None
    hint: str = "install it, or give the path of its file"
    serial: bytes = b""
    _handle: ctypes.CDLL | None = field(default=None, init=False, repr=False)
    _serial: Library | None = field(default=None, init=False, repr=False)

    def register(self) -> Self:
        """Let kernels call it."""
        foreign.provide(self.name, self)
        return self

    def record(self) -> LibraryRecord:
        """What an artifact has to know of it."""
        opened = None if self._handle is None else Path(self._handle._name)
        if opened is None or not opened.is_file():
            return LibraryRecord(self.name, self.forms, self.threads, self.hint)
        return LibraryRecord(
            self.name, self.forms, self.threads, self.hint, opened.name, digest_of(opened)
        )

    def serial_object(self) -> bytes:
        """The object code of `SERIAL_BEGIN` and `SERIAL_END`."""
        return self.serial

    def missing(self) -> str | None:
        """Why it can't be used; None if it can."""
        try:
            self.open()
        except UnityError as error:
            return error.message
        return None

    def open(self) -> ctypes.CDLL:
        """The library, loaded on the first call.

        Raises:
            UnityError: No file was found, or none could be loaded.
        """
        if self._handle is None:
            reasons: list[str] = []
            for path in self._paths(reasons):
                try:
                    self._handle = ctypes.CDLL(str(path))
                except OSError as error:
                    reasons.append(f"{path}: {error}")
                else:
                    return self._handle
            tried = "; ".join(reasons) or "no file was found"
            raise ImplementationError(
                f"library:{self.name}",
                f"the library {self.name!r} can't be loaded: {tried}",
                self.hint,
            )
        return self._handle

    def _paths(self, reasons: list[str]) -> Iterator[str | Path]:
        for place in self.files() if callable(self.files) else self.files:
            if isinstance(place, PackageFiles):
                found = list(place.paths())
                if not found:
                    reasons.append(f"no file {place}")
                yield from found
            else:
                yield place

    def address(self, function: str) -> int:
        """Where a function lies.

        Raises:
            UnityError: The library can't be loaded, or has no such function.
        """
        if self.threads is not None and function in (SERIAL_BEGIN, SERIAL_END):
            return self._serial_code(self.threads)[f"unity_{function}"]
        handle = self.open()
        for form in self.forms:
            symbol = form.format(function)
            if hasattr(handle, symbol):
                found = ctypes.cast(getattr(handle, symbol), ctypes.c_void_p).value
                assert found is not None
                return found
        written = ", ".join(form.format(function) for form in self.forms)
        raise ImplementationError(
            f"library:{self.name}",
            f"the library {self.name!r} ({handle._name}) has no function {function!r}",
            f"looked for {written}",
        )

    def _serial_code(self, threads: ThreadControl) -> Library:
        if self._serial is None:
            imports = {
                "unity_get": self.address(threads.get),
                "unity_set": self.address(threads.set),
            }
            if not self.serial_object():
                raise UnityError(
                    f"the library {self.name!r} is to be kept to one thread, and nothing here can",
                    hint="register it by unity.codegen.library.SharedLibrary",
                )
            names = [f"unity_{SERIAL_BEGIN}", f"unity_{SERIAL_END}"]
            self._serial = link([self.serial_object()], names, imports)
        return self._serial


def digest_of(file: Path) -> str:
    """What tells a file from every other; empty if it can't be read."""
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, _digest).hexdigest()
    except OSError:
        return ""


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)
