"""The vendors of models: their services' wires, read and written here, on the SDKs that they publish."""
