"""Stage 4: finds facts about the graph that lowering needs and that no single operation shows."""
