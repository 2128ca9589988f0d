"""What a kernel's loops are to a machine: lane, row, column, depth, taps, panels.

Read from the structure of a stage or a group of stages; nothing is built here.
"""
