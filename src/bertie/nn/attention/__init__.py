"""Attention: projections, scorers, relative and rotary positions."""
