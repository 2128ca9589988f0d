"""Code generation: lowered prim funcs to machine code, graph functions to VM programs."""
