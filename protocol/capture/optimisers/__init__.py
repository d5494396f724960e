"""Stage 5: the optimiser and its scheduler become instructions of the update and tables of learning rates."""
