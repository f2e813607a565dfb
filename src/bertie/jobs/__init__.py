"""One job per verb: a frozen spec with `.run(on_event)`. The command line, Python and a server all run these."""
