"""The local rig: recordings, their replay, and stand-ins for what the product talks to."""
