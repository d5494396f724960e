"""Stage 3: facts about the graph that lowering needs and that no single operation shows."""
