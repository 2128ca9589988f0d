"""The backend ``cpu``: this machine, or one described, through LLVM."""

from __future__ import annotations

from unity.transform import Backend

from .engine import register_engines
from .library import register_libraries
from .llvm.host import host_target


def register() -> None:
    """Libraries and engines that are candidates where they are installed."""
    register_libraries()
    register_engines()


CPU = Backend(
    name="cpu",
    detect=host_target,
    efficiency={
        "tir": {"contraction": 0.75, "convolution": 0.75, "rows": 0.6, "elementwise": 0.8,
                "movement": 0.5},
        "library:openblas": {"contraction": 0.7},
        "engine:onnxruntime": {"contraction": 0.7, "convolution": 0.65, "rows": 0.5,
                               "elementwise": 0.5, "movement": 0.6},
        "engine:openvino": {"contraction": 0.7, "convolution": 0.65, "rows": 0.4,
                            "elementwise": 0.4, "movement": 0.5},
    },
    register=register,
)  # fmt: skip
