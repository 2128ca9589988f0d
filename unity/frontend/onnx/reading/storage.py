"""Where the bytes of a model's tensors lie: in its own file, in files beside it, or in memory.

Files are mapped, each once (`unity.ir.arrays.mapped`): importing a model reads none of its weights.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from unity.errors import UnityError
from unity.ir.arrays.mapped import MappedFile, map_file

from .outline import OWN


@dataclass(frozen=True, slots=True)
class Storage:
    """What a model was read from.

    Attributes:
        own: Its file or its bytes; None for a message in memory, which holds its data itself.
        folder: Where its external data may lie; None for nowhere.
    """

    own: MappedFile | bytes | None = None
    folder: Path | None = None
    _files: dict[Path, MappedFile | bytes] = field(default_factory=dict[Path, MappedFile | bytes])

    def external(self, tensor: onnx.TensorProto, name: str, needed: int) -> memoryview:
        """The bytes of a tensor that lie outside of its message.

        Args:
            tensor: The tensor.
            name: What to call it in messages.
            needed: How many bytes it has where that is not said.

        Raises:
            UnityError: They are not there.
        """
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        data = self._data(location, name)
        start = _number(entries, "offset", name, 0)
        end = start + _number(entries, "length", name, needed)
        if end > len(data):
            raise UnityError(
                f"{name} needs the bytes {start} to {end} of {location!r}, which has {len(data)}",
                hint="the file is damaged or cut short",
            )
        return memoryview(data)[start:end]

    def _data(self, location: str, name: str) -> MappedFile | bytes:
        if location == OWN and self.own is not None:
            return self.own
        if self.folder is None:
            raise UnityError(
                f"{name} is stored in the file {location!r}, "
                "but the model was not read from a folder",
                hint="pass the model's path, not its bytes",
            )
        path = inside(self.folder, location, name)
        if path not in self._files:
            self._files[path] = contents(path)
        return self._files[path]

    def require_unchanged(self) -> None:
        """Refuse files that were written to while the model was read.

        Raises:
            UnityError: There is one.
        """
        for data in (self.own, *self._files.values()):
            if isinstance(data, MappedFile):
                data.require_unchanged()


def contents(path: Path) -> MappedFile | bytes:
    """What is in a file: mapped, or read where that can't be done (pipes, empty files).

    Raises:
        UnityError: It can't be read.
    """
    try:
        if path.is_file():
            with suppress(OSError, ValueError):
                return map_file(path)
        return path.read_bytes()
    except OSError as error:
        raise UnityError(f"can't read {str(path)!r}: {error.strerror}") from None


def inside(folder: Path, location: str, name: str) -> Path:
    """The file `location` names, which must lie in `folder`, links followed.

    Raises:
        UnityError: It leads elsewhere, or is no file.
    """
    root = folder.resolve()
    path = (root / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(root):
        raise UnityError(
            f"{name}: external data {location!r} is outside the model's folder",
            hint="Unity reads only files beside the model",
        )
    if not path.is_file():
        raise UnityError(f"{name}: the external data file {location!r} is missing")
    return path


def _number(entries: dict[str, str], key: str, name: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not text.isdigit():
        raise UnityError(f"{name}: external data has {key} {text!r}")
    return int(text)
