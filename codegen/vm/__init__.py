"""From a planned module to what the VM runs: bytecode, and native code per graph function."""
