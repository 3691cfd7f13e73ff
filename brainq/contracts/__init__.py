"""Data that crosses a process boundary: frozen pydantic models and enumerations. Imports nothing else of brainq."""
