"""Embed a collection, keep it, find by meaning. Texts and an encoder enter; files of vectors leave."""
