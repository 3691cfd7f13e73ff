"""The schema's history: `upgrade.py` brings a database to its newest revision."""
