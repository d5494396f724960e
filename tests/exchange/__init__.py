"""Lanes as processes of their own, over HTTP: the bits of the oracle, whatever links and machines do."""
