"""Operators that go over an axis: sums and their like, running ones, softmax."""
