"""From bytecode to LLVM IR: the functions of a program, and their entries for Python."""
