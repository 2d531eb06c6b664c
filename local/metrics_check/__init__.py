"""Says which metrics of a live cluster the detectors find, and what to switch on for the rest.

`needs` is the table; `asking` asks a backend; `judging` compares; `__main__` prints.
"""
