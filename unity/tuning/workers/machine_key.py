"""What records call a machine."""

from __future__ import annotations

from unity.machine.target import Target


def key_of_target(target: Target) -> str:
    """What records call a machine: all that changes which code is made, and how many threads.

    >>> key_of_target(Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2",), 256))
    'cpu x86_64-unknown-linux-gnu haswell avx2 256x16 32768/1048576/8388608 1 threads'
    """
    caches = f"{target.l1_bytes}/{target.l2_bytes}/{target.l3_bytes}"
    vectors = f"{target.vector_bits}x{target.vector_registers}"
    features = ",".join(target.features)
    return (
        f"{target.kind} {target.triple} {target.cpu} {features} {vectors} {caches} "
        f"{target.threads} threads"
    )


def without_threads(key: str) -> tuple[str, int]:
    """The machine that a record names, whatever its threads, and how many these are.

    >>> without_threads("cpu x86_64 haswell avx2 256x16 32768/1048576/8388608 4 threads")
    ('cpu x86_64 haswell avx2 256x16 32768/1048576/8388608', 4)
    """
    machine, _, threads = key.removesuffix(" threads").rpartition(" ")
    return (machine, int(threads)) if threads.isdecimal() else (key, 0)
