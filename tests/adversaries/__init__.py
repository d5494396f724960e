"""Cheating parties for tests and demo. Most are production parties with some collaborators replaced."""
