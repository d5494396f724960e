"""The campaign: every fault at every stage of a task, upon every party, and what is lost by it (docs/security.md)."""
