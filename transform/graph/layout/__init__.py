"""Passes that choose the layout and the width of tensors: blocks, panels, tiles, narrow floats."""
