"""OpenAI's wires, and the common parts of all chat wires."""
