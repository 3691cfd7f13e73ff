"""What every process of brainq needs, whatever it does: logs and metrics, threads and child processes, settings,
text."""
