"""The studies: one file for each question, and the list of them."""
