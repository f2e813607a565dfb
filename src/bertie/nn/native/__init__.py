"""Small kernels in C, compiled on first use where a compiler is found. Everything here has a torch fallback."""
