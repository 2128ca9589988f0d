"""Operands that are known only at run time: axes, shapes, bounds, counts, as symbols."""
