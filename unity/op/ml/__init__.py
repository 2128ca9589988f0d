"""Operators of classical machine learning: trees, and machines that compare pairs of classes."""
