"""The submitter's side: development chain, deployment, tasks, results and the demonstration."""
