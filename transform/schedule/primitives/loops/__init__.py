"""Primitives that change loops: their order, number and kind."""
