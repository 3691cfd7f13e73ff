"""The Grafana dashboard: `python -m ops.grafana` writes `dashboards/brainq.json` of `dashboard.py`."""
