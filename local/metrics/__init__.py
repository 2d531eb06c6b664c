"""Metrics of a recording: read from its files, and served the way Prometheus serves them."""
