"""The submitter's side: development chain, deployment, tasks and results."""
