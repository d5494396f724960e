"""Stage 5: lowers every ATen operation of the graph to instructions, by its rule in `lowering.ops`."""
