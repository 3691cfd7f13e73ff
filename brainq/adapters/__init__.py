"""The services behind brainq: Redis, SQL, Celery and the model vendors, each behind one package."""
