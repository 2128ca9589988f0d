"""Calls of graph functions that mean several of ours, or something of the machine.

Each file takes a call in TVM's spelling and gives an expression in ours; `before` holds what has to
stand in front of the statement.
"""
