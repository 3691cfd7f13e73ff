"""What crosses a process line: frozen pydantic models and enumerations. Imports nothing else of brainq."""
