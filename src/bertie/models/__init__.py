"""Recipes, the model, the model folder, and other people's weights."""
