"""Measures the price of trust: real nodes play tasks on a development chain, and gas, fees and locks are counted."""
