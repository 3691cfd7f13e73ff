"""Services that are asked by way of pydantic-ai."""
