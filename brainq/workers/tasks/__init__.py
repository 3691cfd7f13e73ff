"""The bodies of Celery tasks. They unpack ids and call a machine, and any of them may run twice."""
