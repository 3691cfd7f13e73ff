"""The work of all pools in the threads of one program, without Celery."""
