"""The command line: one file per verb. Parse, call, print; no logic."""
