"""The file of a model: its bytes, those beside it, its operator sets, functions, declarations."""
