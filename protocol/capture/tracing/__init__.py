"""Stage 2: runs the submitter's code once, on fake tensors, and records it as a graph of ATen operations."""
