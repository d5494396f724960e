"""Lanes as separate processes, over HTTP: the bits of the oracle, whatever links and machines do."""
