"""Supervised tasks: columns, head, loss, metrics and answers of one task in one file."""
