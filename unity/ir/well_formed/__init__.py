"""The verifiers of modules and of prim funcs."""
