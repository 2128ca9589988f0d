"""Schedule rules: how each kind of stage is laid out, told by its structure.

A file a rule: what it takes (`match`), what it decides about it with what else that may be
(`decide`, `legal`), and its steps. `table` holds those for single stages, best first; `groups`
those for several in a row, which `default` asks before. Folders are families of stages; what all
rules share (`rule`, `stages`, `cover`, `decisions`) lies here.
"""
