"""The agents: strategies of solvers, verifiers, bystanders and submitters, and populations of them.

A strategy is called with a view of the market and returns its actions as arrays.
"""
