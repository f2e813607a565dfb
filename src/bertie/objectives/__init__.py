"""Self-supervised objectives: corruption, head, loss and metrics of one objective in one file."""
