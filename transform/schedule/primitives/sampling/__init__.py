"""Primitives that draw a number at random and record it as a decision."""
