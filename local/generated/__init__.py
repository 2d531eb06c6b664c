"""Clusters of any size with a real one's baggage, made up on the spot and served over HTTP."""
