"""Files to run brainq with: images, charts, units, and settings of Redis, Prometheus and Grafana."""
