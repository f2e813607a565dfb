"""How a model learns: optimizer, schedule, learning rates, adversarial and contrastive steps."""
