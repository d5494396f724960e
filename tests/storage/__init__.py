"""Tests of storage in a running S3 server: moto's, in its own process."""
