"""Primitives that take a reduction apart or put it together."""
