"""Programs built in Python: `GraphBuilder`, and functions for modules of kernels alone."""

from .builder import GraphBuilder
from .entries import with_entries

__all__ = ["GraphBuilder", "with_entries"]
