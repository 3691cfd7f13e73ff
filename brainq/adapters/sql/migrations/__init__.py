"""The schema's history. `upgrade.py` upgrades a database to the newest revision."""
