"""The adapters of the vendors' services: each reads and writes one wire, on the SDK that the vendor publishes."""
