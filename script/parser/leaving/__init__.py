"""Leaving statements other than at their end: where, and what becomes of loops of kernels."""
