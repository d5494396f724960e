"""Parties that cheat: each is the production party with one collaborator exchanged; tests and demo start them."""
