"""Measures what nodes use over many tasks: memory, files, threads, disk, and requests to the chain."""
