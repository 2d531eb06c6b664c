"""The life of a finding and the cards that show it: pure."""
