"""Runs a program's steps for a party: replay, devices, worker processes."""
