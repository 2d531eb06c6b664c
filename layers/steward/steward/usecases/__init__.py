"""One use case a function: the pure parts joined to ports."""
