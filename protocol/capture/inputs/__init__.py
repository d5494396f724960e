"""Stage 1: examines the model, the objective and the dataset, without changing them."""
