"""The thread pool of parallel loops: `module.py` is its LLVM module, the others parts of it."""
