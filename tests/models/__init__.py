"""Models as a submitter writes them, for the tests of `capture`."""
