"""Words of TVMScript that only mean something on a device that is no CPU, or on several machines.

A source that holds one of them is no CPU source, whether Unity reads it or not. What it was told
apart by is a name: the scope, the intrinsic, the target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SCOPES = r"shared|shared\.dyn|warp|tmem|wmma\.\w+|m16n8k8\.\w+|trn\.\w+|metal\.\w+|local\.L0\w"
_TARGETS = r"cuda|rocm|metal|vulkan|opencl|webgpu|hexagon|trn|nvptx|adreno|qcom/\S+|ethos-u"
_ON_ETHOSU = r"\bethosu_\w+|\"pragma_layout\""
_ON_HEXAGON = r"\bT\.(?:start|end)_profile_intrinsic\b|\"vrmpy|llvm\.hexagon\."
DEVICE_WORDS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "threads of a device": r"\b(?:threadIdx|blockIdx|clusterCtaIdx)\.|\bvthread\b"
        r"|\bT\.(?:thread_binding|env_thread|launch_thread|device_entry|thread_return)\b"
        r"|\bT\.\w*(?:cta_id|warp_id|lane_id|thread_id|warpgroup_id|cluster_id)\w*\(",
        "memory of a device": rf"\"(?:{_SCOPES})\"|\"global\.(?:texture|vtcm|ddr)[^\"]*\""
        r"|\bT\.(?:alloc_shared|shared_scalar|SMEMPool|TensorMap)\b|\"ipc_memory\"",
        "libraries of a device": r"\bcuda_graph\b|\btvm\.contrib\.thrust\b",
        "instructions of a device": r"\b(?:T|I)\.(?:ptx|cuda|nki|metal|nvshmem|hexagon)\b"
        r"|\bT\.(?:ptx_\w+|mma_\w+|simdgroup_\w+|tvm_mma\w*|tvm_bmma\w*|tvm_warp_\w+"
        r"|tvm_thread_\w+|tvm_storage_sync|tvm_fill_fragment|tvm_load_matrix_sync"
        r"|tvm_store_matrix_sync|cooperative_\w+|dma_\w+)\b",
        "instructions of an NPU or a DSP": rf"{_ON_ETHOSU}|{_ON_HEXAGON}",
        "tiles of a device": r"\bTx\.|\bT\.(?:TileLayout|ComposeLayout|SwizzleLayout|SMEMPool)\b",
        "a device's target": rf"\bT\.target\(\s*\"(?:{_TARGETS})\b"
        rf"|\"kind\":\s*\"(?:{_TARGETS})\""
        rf"|\bI\.vdevice\(\s*\"(?:{_TARGETS})\b|\bR\.device\(|\bR\.hint_on_device\b"
        r"|\bI\.vdevice\(\{|\"device_type\", 2\b",
        "several machines": r"\bR\.(?:dist|ccl)\.|\bR\.(?:DTensor|device_mesh)\b|disco",
    }.items()
}


def device_word(source: str) -> str | None:
    """What makes a source one of a device's: the kind of word, and the word.

    >>> device_word('for i in T.thread_binding(4, "threadIdx.x"):')
    'threads of a device: T.thread_binding'
    >>> device_word('for i in T.serial(4):') is None
    True
    """
    for name, pattern in DEVICE_WORDS.items():
        found = pattern.search(source)
        if found is not None:
            return f"{name}: {found[0].strip('(.')}"
    return None
