"""Schedule rules: how each kind of stage is laid out, told by its structure.

`table` holds those for single stages, best first; `default` asks for groups of stages before.
"""
