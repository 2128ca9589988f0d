"""Nodes that work on maps: detection, reading between pixels, what pooling leaves out."""
