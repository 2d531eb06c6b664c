"""Answers to commands: one a module, each a list of lines, the most important first. Pure."""
