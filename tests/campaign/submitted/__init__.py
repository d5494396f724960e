"""The task that the submitter under test submits."""
