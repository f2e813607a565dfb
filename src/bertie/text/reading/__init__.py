"""Reads files of text: formats, byte ranges, documents, cleaning."""
