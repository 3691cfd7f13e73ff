"""Actions: what a command does when it runs."""
