"""Jobs that turn text into vocabularies and corpora."""
