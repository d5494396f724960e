"""Sweeps: what an operator asks for, cut into chunks of points that any process can play on its own.

`grammar` and `axes` read parameters, `plan` is the whole question, `chunk` plays a part of it, `workers` and `cluster`
play many side by side. What comes out does not depend on who played it.
"""
