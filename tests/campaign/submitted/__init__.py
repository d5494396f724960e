"""What the submitter under test submits."""
