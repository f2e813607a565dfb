"""Tokens enter, batches leave. Knows no objective: objectives name the shape of sample they eat, data/ builds it."""
