"""Stage 2: the submitter's code runs once on fake tensors and becomes a graph of ATen operations."""
