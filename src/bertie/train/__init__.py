"""Trains models: optimizer, schedule, loop, checkpoints, run folder."""
