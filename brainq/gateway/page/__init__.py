"""The page at `/`: a shell and modules that run in a browser and use the native routes only."""
