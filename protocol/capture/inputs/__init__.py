"""Stage 1: examines the arguments of `capture`, without changing them."""
