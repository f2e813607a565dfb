"""Jobs that pre-train, plan runs, and show recipes and runs."""
