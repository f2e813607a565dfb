"""The run folder: log, checkpoints, history, summary."""
