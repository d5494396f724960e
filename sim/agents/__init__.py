"""The agents: strategies of solvers and verifiers, and populations of them. A strategy sees a view and returns
arrays.
"""
