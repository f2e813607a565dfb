"""Turns documents into samples, each a pure function of (seed, epoch, index). One file for each shape."""
