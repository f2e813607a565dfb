"""Comparisons that outlast a sitting. Not part of the package; `README.md` here says how to run and write them."""
