"""What tests and benchmarks use of onnxruntime, typed."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

class NodeArg:
    name: str
    type: str
    shape: list[int | str | None]

class GraphOptimizationLevel(Enum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_ALL = 99

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    graph_optimization_level: GraphOptimizationLevel
    def add_session_config_entry(self, config_key: str, config_value: str) -> None: ...

class IOBinding:
    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: np.dtype[Any],
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None: ...
    def bind_output(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: np.dtype[Any],
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None: ...

class InferenceSession:
    def __init__(
        self,
        path_or_bytes: str | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str] | None = None,
    ) -> None: ...
    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]
    ) -> list[npt.NDArray[np.generic]]: ...
    def io_binding(self) -> IOBinding: ...
    def run_with_iobinding(self, binding: IOBinding) -> None: ...
    def get_inputs(self) -> list[NodeArg]: ...
    def get_outputs(self) -> list[NodeArg]: ...

def set_default_logger_severity(level: int) -> None: ...
