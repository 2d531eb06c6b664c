"""Kueue's objects, in either API form, reduced to one model."""
