"""Passes that make a graph function smaller and plainer: folding, algebra, what is not needed."""
