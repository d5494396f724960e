"""The rules, formats and computations on which all parties agree, bit for bit, and the code that they
share.

Imports none of the parties' packages (`assay`, `solver` and `verifier`).
"""
