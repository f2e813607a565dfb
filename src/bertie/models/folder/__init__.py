"""A model folder: finding, reading, checking and writing its files."""
