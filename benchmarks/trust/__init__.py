"""Measures the price of trust: real nodes play tasks on a development chain; gas and locks are counted."""
