"""Symbols of unknown sizes: as sympy has them, where they occur, what they are taken for."""
