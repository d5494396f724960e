"""Cheating parties for tests and demo: each is the production party with one collaborator replaced."""
