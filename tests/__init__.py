"""The test suite, sorted by what must be running: see the folders."""
