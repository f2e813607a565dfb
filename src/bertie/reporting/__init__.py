"""Events, progress, charts, HTML pages and formatted numbers, for every layer."""
