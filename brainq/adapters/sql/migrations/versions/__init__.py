"""The migrations, one revision per file. A released revision is never edited."""
