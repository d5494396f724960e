"""Results: a folder with a manifest, rows as Parquet parts, and a report as one HTML file."""
