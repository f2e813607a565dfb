"""The options that several jobs share: text, rows, recipes, initial models, amounts."""
