"""Relay's text, 0.0.4 and 0.0.5, into its syntax: `parse_module`."""

from .module import parse_module

__all__ = ["parse_module"]
