"""Stage 5: the optimiser becomes instructions of the update, and its scheduler tables of learning rates."""
