"""Turns a collection of texts into files of vectors, and finds texts by meaning."""
