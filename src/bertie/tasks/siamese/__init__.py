"""Encoders that learn to compare: rows, head, losses, figures."""
