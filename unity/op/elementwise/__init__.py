"""Operators of single elements: arithmetic, comparisons, activations, dtypes, quantization."""
