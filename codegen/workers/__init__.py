"""Child processes: asked by lines of JSON (`child`), they answer while there is a parent (`serve`).

`kernels` compiles kernels beside the compiler (`crew` asks it); `unity.tuning.workers` has those
that measure.
"""
