"""The commands, declared: they import typer, and what they run only when they run."""
