"""SQL: what is known before Redis knows it and after Redis has forgotten it.

The only package that imports SQLAlchemy. Start at `brainq.store.store.Store`.
"""
