"""WSGI stand-ins that answer from a recording, in the wire form of what they stand in for."""
