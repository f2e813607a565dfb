"""Jobs that fine-tune, evaluate and predict."""
