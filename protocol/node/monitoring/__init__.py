"""Monitoring of a long-running node: is it alive and ready, its metrics, and alerts to an operator's webhook."""
