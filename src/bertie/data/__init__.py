"""Turns tokens into batches. Objectives name the shape of sample they need, and data/ builds it without knowing
them."""
