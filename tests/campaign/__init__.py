"""The campaign: every fault against every party at every stage of a task, where possible. The results are in
docs/security.md.
"""
