"""What a program is: dims, dtypes, types, nodes of both levels, the module, and walking them.

Import from the files themselves (``from unity.ir.graph import Var``): this file stays empty, so
that the runtime can use `unity.ir.dtype` without loading the compiler.
"""
