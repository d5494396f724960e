"""The test suite and its helpers, one folder for each kind of test."""
