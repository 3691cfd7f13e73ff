"""Every override of Celery 5.7's and kombu's private parts."""
