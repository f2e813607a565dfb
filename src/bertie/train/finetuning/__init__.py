"""Fine-tuning: labelled rows, evaluation on held-out rows, stored features, several tasks and seeds."""
