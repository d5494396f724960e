"""Lanes as separate processes over HTTP: they compute the oracle's bits, whatever links and machines do."""
