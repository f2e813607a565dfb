"""Reports on runs and on the task models they end in: charts, pages, comparisons."""
