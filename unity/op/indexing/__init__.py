"""Operators whose indices are data: gather, scatter, one_hot, and searches for an index."""
