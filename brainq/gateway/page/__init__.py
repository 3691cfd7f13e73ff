"""The page at `/`: a shell and modules that a browser runs. They use the native routes, and nothing else."""
