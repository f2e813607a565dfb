"""Confidence intervals and the worst mistakes of a task model."""
