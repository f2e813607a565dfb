"""Trains vocabularies on documents: counted, in a canonical order, measured; and adds words to old ones."""
