"""Operators on signals."""
