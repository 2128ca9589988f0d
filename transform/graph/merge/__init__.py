"""Passes that make one operator of several over the same input."""
