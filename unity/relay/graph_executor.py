"""`GraphModule`: inputs set one by one, a run, outputs read; and how long runs take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.saved.params import read_params
from unity.runtime.bytecode import TensorSpec
from unity.runtime.executable import Executable

from .nd import Device, NDArray, array
from .types import dtype_of

if TYPE_CHECKING:
    from .building import Library, Runner


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of runs, in seconds."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the repeats."""
        return mean(self.results)

    @property
    def median(self) -> float:
        """The median of the repeats."""
        return median(self.results)

    @property
    def min(self) -> float:
        """The fastest."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The slowest."""
        return max(self.results)

    @property
    def std(self) -> float:
        """How far they stray."""
        return stdev(self.results) if len(self.results) > 1 else 0.0

    def __str__(self) -> str:
        """As TVM shows them: in milliseconds."""
        names = ("mean", "median", "max", "min", "std")
        head = "".join(f"{name:^13}" for name in names)
        return head + "\n" + "".join(f"{getattr(self, n) * 1e3:^13.4f}" for n in names)


class GraphModule:
    """A compiled model as scripts run it.

    Args:
        module: ``lib["default"](device)``.
    """

    def __init__(self, module: Runner | Library) -> None:
        self._executable: Executable = module.executable
        code = self._executable.program.function(_main(self._executable))
        self._params = code.params
        self._names = code.input_names or tuple(p.name for p in code.params)
        self._trees = {tree.index for tree in code.forms.tree_inputs}
        self._inputs: dict[int, Any] = {}
        self._outputs: list[NDArray] | None = None
        self._result: object = None
        self._count = len(_flat(code.result))

    @property
    def module(self) -> GraphModule:
        """Itself: ``module.module.time_evaluator("run", dev)``, as scripts write."""
        return self

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """``module["run"]``."""
        found: Callable[..., Any] = getattr(self, name)
        return found

    def set_input(
        self, key: int | str | None = None, value: object = None, **params: object
    ) -> None:
        """Set an input by its number or name; others by name."""
        if key is not None:
            self._inputs[self.get_input_index(key)] = self._fitting(key, value)
        self._set_all(params)

    def load_params(self, params_bytes: bytes) -> None:
        """Set the inputs that a parameter dictionary names."""
        for name, value in read_params(params_bytes).items():
            if name in self._names:
                self.set_input(name, value)

    def run(self, **input_dict: object) -> None:
        """Compute the outputs."""
        self._set_all(input_dict)
        missing = [n for i, n in enumerate(self._names) if i not in self._inputs]
        if missing:
            raise UnityError(f"inputs are not set: {', '.join(missing)}")
        self._result = self._executable(*(_plain(self._inputs[i]) for i in range(len(self._names))))
        self._outputs = [np.asarray(p).view(NDArray) for p in _flat(self._result)]

    @property
    def result(self) -> object:
        """What the last run gave, as the executable gives it: an array, or tuples of them."""
        return self._result

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output of the last run, copied to an array if one is given.

        Those of tuples in tuples are counted through, as TVM does.
        """
        if self._outputs is None:
            raise UnityError("nothing was run: module.run() comes before get_output")
        if not 0 <= index < len(self._outputs):
            raise UnityError(f"output {index} of {len(self._outputs)}")
        return self._outputs[index] if out is None else out.copyfrom(self._outputs[index])

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An input as it was set."""
        found = self._inputs[self.get_input_index(index)]
        return found if out is None else out.copyfrom(found)

    def get_num_outputs(self) -> int:
        """How many outputs there are."""
        return self._count

    def get_num_inputs(self) -> int:
        """How many inputs there are."""
        return len(self._names)

    def get_input_index(self, name: int | str) -> int:
        """The number of an input."""
        place = name if isinstance(name, int) else _place(self._names, name)
        if not 0 <= place < len(self._names):
            raise UnityError(
                f"the model has no input {name!r}", hint=f"it has {', '.join(self._names)}"
            )
        return place

    def get_input_info(self) -> tuple[dict[str, tuple[int | None, ...]], dict[str, str]]:
        """The inputs' shapes, None where a size is open, and dtypes."""
        shapes: dict[str, tuple[int | None, ...]] = {}
        dtypes: dict[str, str] = {}
        for name, param in zip(self._names, self._params, strict=True):
            if isinstance(param.spec, TensorSpec):
                shapes[name] = tuple(
                    s if isinstance(s, int) else None for s in param.spec.shape or ()
                )
                dtypes[name] = param.spec.dtype or ""
        return shapes, dtypes

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        **_: object,
    ) -> Callable[..., BenchmarkResult]:
        """A function that times another of this module, ``"run"``."""
        call = self[func_name]

        def evaluate(*args: object) -> BenchmarkResult:
            call(*args)
            return timed(lambda: call(*args), number, repeat, min_repeat_ms)

        return evaluate

    def benchmark(
        self,
        device: Device | None = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        end_to_end: bool = False,
        **inputs: object,
    ) -> BenchmarkResult:
        """Time runs."""
        self._set_all(inputs)
        return self.time_evaluator(func_name, device, number, repeat, min_repeat_ms or 0)()

    def _set_all(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            self.set_input(name, value)

    def _fitting(self, key: int | str, value: object) -> Any:
        """A copy of an array, of the input's dtype, as TVM makes it; a tuple as it is."""
        place = self.get_input_index(key)
        spec = self._params[place].spec
        if place in self._trees or not isinstance(spec, TensorSpec):
            return value
        found = np.asarray(value)
        if spec.dtype is not None:
            found = found.astype(_numpy(spec.dtype))
        return array(found)


def _plain(value: Any) -> Any:
    """An input as plain numpy, where it is an array."""
    return np.asarray(value) if isinstance(value, np.ndarray) else value


def _flat(value: object) -> list[object]:
    """The tensors in tuples of them, or their specifications, in order."""
    found: list[object] = []
    stack = [value]
    while stack:
        part = stack.pop()
        fields = part if isinstance(part, tuple) else getattr(part, "fields", None)
        if isinstance(fields, tuple):
            stack += reversed(fields)
        else:
            found.append(part)
    return found


def _numpy(name: str) -> np.dtype[Any]:
    return dtype_of(name).numpy


def _main(executable: Executable) -> str:
    return "main" if "main" in executable.functions else executable.functions[0]


def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else -1


def timed(
    run: Callable[[], object], number: int, repeat: int, min_repeat_ms: float
) -> BenchmarkResult:
    """How long calls take."""
    return BenchmarkResult(tuple(_time(run, number, min_repeat_ms) for _ in range(repeat)))


def _time(run: Callable[[], object], number: int, min_repeat_ms: float) -> float:
    """Seconds of a run, over so many or so long."""
    while True:
        start = time.perf_counter()
        for _ in range(number):
            run()
        took = time.perf_counter() - start
        if took * 1e3 >= min_repeat_ms:
            return took / number
        number = max(number * 2, int(number * min_repeat_ms / max(took * 1e3, 1e-3)))


def create(graph_json_str: str, libmod: Library, device: Device | None = None) -> GraphModule:
    """A module of what ``graph, lib, params = relay.build(...)`` gave."""
    return GraphModule(libmod)


def load_param_dict(param_bytes: bytes) -> Mapping[str, NDArray]:
    """The arrays of a parameter dictionary."""
    return {name: array(value) for name, value in read_params(param_bytes).items()}
