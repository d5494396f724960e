"""What a task is: its terms, its money, and its bundle of programs and data."""
