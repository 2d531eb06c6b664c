"""The Kubernetes API of a cluster, listed page by page and reduced at once."""
