"""Documents in, a vocabulary out: counted, trained in a canonical order, measured; or an old one with new words."""
