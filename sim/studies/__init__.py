"""The questions: one file each, and the list of them."""
