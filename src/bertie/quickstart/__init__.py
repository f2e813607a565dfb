"""A first job from start to finish: turns Python's documentation, or a user's texts, into a search by meaning."""
