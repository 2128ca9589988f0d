"""The interpreter as an engine: slow, always there; the shortest example of one."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import constants_of, parse, print_module
from unity.transform.graph.resolve import OpSite


@dataclass(frozen=True, slots=True)
class InterpretedModule:
    """A module whose function ``main`` is interpreted."""

    module: IRModule

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs."""
        result = interpret(self.module, "main", inputs)
        results = result if isinstance(result, tuple) else (result,)
        for target, value in zip(outputs, results, strict=True):
            np.copyto(target, np.asarray(value))

    def save(self) -> bytes:
        """The module's text and its constants."""
        file = io.BytesIO()
        constants = constants_of(self.module)
        names = list(constants)
        head = json.dumps({"text": print_module(self.module), "constants": names})
        np.savez(file, np.array(head), *constants.values())
        return file.getvalue()


@dataclass(frozen=True, slots=True)
class InterpreterEngine:
    """Takes everything."""

    name: str = "interpreter"

    def missing(self) -> str | None:
        """It is always there."""
        return None

    def supports(self, site: OpSite) -> str | None:
        """Whatever the language has."""
        return None

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> InterpretedModule:
        """Nothing to do."""
        return InterpretedModule(subgraph)

    def load(self, data: bytes, target: Target, threads: int) -> InterpretedModule:
        """Parse what was saved."""
        found = np.load(io.BytesIO(data))
        head = json.loads(str(found["arr_0"]))
        constants = {name: found[f"arr_{i + 1}"] for i, name in enumerate(head["constants"])}
        return InterpretedModule(parse(head["text"], constants))
