"""Sweeps: an operator's question, cut into chunks of points that any process can play independently.

`grammar` and `axes` read parameters, `plan` is the whole question, `chunk` plays a part of it, and `workers`
and `cluster` play chunks in parallel. Results do not depend on which process played which chunk.
"""
