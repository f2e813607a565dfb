"""One file per contender; each runs as a process of its own, in the environment that has its library."""
