"""Stage 4: finds properties of the graph that lowering must know and that no operation shows by itself."""
