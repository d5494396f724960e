"""The campaign: every fault against every party at every stage of a task, and what it costs
(docs/security.md).
"""
