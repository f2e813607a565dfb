"""Pre-training: options, batches from a corpus, evaluation on held-out text."""
