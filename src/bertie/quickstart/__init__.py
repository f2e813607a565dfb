"""A first job from end to end: the documentation of this Python, or a user's texts, enter; answers by meaning leave."""
