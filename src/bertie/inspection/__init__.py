"""Looking into a model: a model or its spec enters, something for a person to read leaves."""
