"""What a kernel's loops are to a machine: lane, row, column, depth, taps, panels.

A file here reads one kind of roles out of the structure of a stage, or of stages in a row, into a
frozen dataclass, or says that there are none. It takes no step and makes no statement of a kernel:
stages are only written over each other's variables where they have to be compared (`row_group`,
`attention`, `chunked_columns`). What acts upon roles goes to `tactics`, or to the rule.
"""
