"""Reports on corpora: counts, samples of documents, text shared with test sets."""
