"""Measurements of bertie beside its peers. Not part of the package; `README.md` here says how to read them."""
