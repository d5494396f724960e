"""Stage 4: finds what lowering must know about the graph and no single operation shows."""
