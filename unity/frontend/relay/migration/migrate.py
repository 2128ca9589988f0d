"""A Relay model as a Python program of ours: `migrate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from unity.errors import UnityError
from unity.frontend.relay.read import read_relay
from unity.frontend.relay.translator import Translator
from unity.ir.dims import Dynamic
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.script import constants_of

from .program import program_of
from .report import report


@dataclass(frozen=True, slots=True)
class Migration:
    """What a Relay model becomes.

    Attributes:
        module: The program.
        source: It as Python source, which reads its weights from a file of its own name.
        weights: The large constants by name.
        report: What was translated to what, what was left out, what to check; Markdown.
    """

    module: IRModule
    source: str
    weights: Mapping[str, Array]
    report: str

    def write(self, path: Path) -> tuple[Path, ...]:
        """Write the program, ``path.safetensors`` and ``path.md``; which files those are.

        Raises:
            UnityError: One can't be written.
        """
        texts = {path: self.source.encode(), path.with_suffix(".md"): self.report.encode()}
        if self.weights:
            arrays = {name: np.asarray(a, order="C") for name, a in self.weights.items()}
            texts[path.with_suffix(".safetensors")] = save(arrays)
        for file, data in texts.items():
            try:
                file.write_bytes(data)
            except OSError as error:
                raise UnityError(f"can't write {file}: {error.strerror or error}") from error
        return tuple(texts)


def migrate(
    model: str | Path,
    params: str | Path | Mapping[str, Array] | None = None,
    *,
    dynamic: Dynamic | None = None,
    examples: Mapping[str, object] | None = None,
) -> Migration:
    """Migrate a Relay model.

    Args:
        model: The path of a file, as for `unity.frontend.relay.from_relay`, or Relay's text.
        params: Values for parameters of `main`: the path of a parameter dictionary, or arrays.
        dynamic: Dims of inputs to change, as in `unity.compile`.
        examples: Of inputs of declared types, how far they go: `unity.frontend.relay.from_relay`.

    Raises:
        UnityError: The file is damaged, or the model is ill-formed; the place is told.
        UnsupportedError: It uses what is refused; everything is listed, with place and reason.
    """
    read = read_relay(model, params)
    if "main" not in read.functions:
        raise UnityError(f"{read.file} has no function @main, the entry of a model")
    translator = Translator(read)
    module = translator.module("main", read.params, dynamic, examples)
    source = program_of(module, read.file)
    return Migration(module, source, constants_of(module), report(read, module, translator.record))
