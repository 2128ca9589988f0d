"""What compiled code calls beside itself: kernels by name, shared libraries, foreign functions."""
