"""The performance table: `make bench`, or `python -m benchmarks [--json] [--rows NAME …]`."""

from tests.models.libraries import prepared

prepared()  # what some of them import asks for torchvision where it is installed
