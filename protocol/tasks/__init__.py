"""Tasks: their terms, their amounts of money, and their bundles of programs and data."""
