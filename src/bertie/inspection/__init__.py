"""Describes models and recipes: composition, differences, parameter counts, costs."""
