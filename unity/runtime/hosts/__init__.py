"""The Python functions that programs call: known by their own name, or registered by another."""

from .known import (
    HostRecord,
    Key,
    Recorded,
    host_of,
    is_known,
    known_hosts,
    provide_host,
    record_of,
)

__all__ = [
    "HostRecord",
    "Key",
    "Recorded",
    "host_of",
    "is_known",
    "known_hosts",
    "provide_host",
    "record_of",
]
