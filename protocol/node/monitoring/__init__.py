"""Monitoring of a long-running node: liveness, readiness, metrics, and alerts to an operator's webhook."""
