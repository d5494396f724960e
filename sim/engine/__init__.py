"""The engine: plays many markets at once, as rows of arrays, round by round, from seeded random streams."""
