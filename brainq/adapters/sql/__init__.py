"""SQL: everything that must be recorded before Redis has it, or kept after Redis has expired it.

The only package that imports SQLAlchemy. Start at `brainq.adapters.sql.store.Store`.
"""
