"""The clockwork: markets side by side as rows of arrays, round after round, from seeded streams of random numbers."""
