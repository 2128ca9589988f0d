"""Frontends: each turns a foreign model into an `IRModule`."""
