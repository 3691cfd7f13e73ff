"""Celery task bodies: unpack ids, call a machine, nothing else. Any of them may run twice."""
