"""What a machine is, said once: targets, the numbers that choices are made by, dot products.

Import from the files themselves (``from unity.machine.target import Target``): this file stays
empty, so that the runtime loads no more of it than it needs.
"""
