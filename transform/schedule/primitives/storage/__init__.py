"""Primitives that change where values lie: copies, scopes, layouts."""
