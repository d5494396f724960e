"""The price of trust on a development chain: real parties play tasks, every transaction and lock is counted."""
