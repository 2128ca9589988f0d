"""Passes from operators to kernels, and from kernels' results to destinations."""
