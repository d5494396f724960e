"""Stage 6: turns the optimiser into instructions of the update, and its scheduler into tables of rates."""
