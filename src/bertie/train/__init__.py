"""Training: a model and batches enter, a trained model leaves; optimiser, schedule, loop, checkpoints, run folder."""
