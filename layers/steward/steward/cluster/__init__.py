"""The nouns that detectors, alerts and reports share: frozen, pure, free of any SDK."""
