"""Stage 3: facts about the graph that lowering needs and that cannot be seen from a single operation."""
