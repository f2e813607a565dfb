"""The parts that turn batches into hidden states. They are built from numbers and other parts; none knows a model.

Axes: B rows, T tokens of all rows (flat), L longest row, H width, N heads, D head width, V vocabulary, P predictions.
A part may carry `auxiliary_loss()` and `after_step()`; the model calls them (see models/model.py).
"""
