"""The campaign: every fault at every stage of a task's life, upon every party, and what is lost by it (README.md)."""
