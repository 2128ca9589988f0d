"""Relay models into programs that teams keep: Python source, weights beside it, and a report."""

from .migrate import Migration, migrate

__all__ = ["Migration", "migrate"]
