"""Telling others of endings and approvals over HTTP, signed, at least once.

    what is told of ─ same transaction ─► a pending row a webhook ─► WebhookSender, threads in the finalizer pool
                                                                      │
                         row: done, or due again, or dead with its error ◄── POST, signed

The row in SQL is the truth: it is claimed, settled and retried there. Redis and Celery have no part in it.
"""
