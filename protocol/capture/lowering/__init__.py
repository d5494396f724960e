"""Stage 4: every ATen operation of the graph becomes instructions, by the rule that `lowering.ops` holds for it."""
