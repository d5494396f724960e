"""Measures the price of trust: real nodes play tasks on a development chain; gas, fees and locks are
counted.
"""
