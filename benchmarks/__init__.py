"""The performance table: `make bench`, or `python -m benchmarks [--json] [--rows NAME …]`."""
