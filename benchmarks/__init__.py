"""Measures and prints the performance table: `make bench`, or `python -m benchmarks [--json] [--rows NAME
…]`.
"""

from tests.models.libraries import prepared

prepared()  # libraries that some benchmarks import look for torchvision
