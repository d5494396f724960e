"""Lanes as separate processes over HTTP. They compute the oracle's bits, whatever happens to the links and
the machines.
"""
