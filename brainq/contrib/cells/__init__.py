"""Several cells: whole deployments that serve some tenants each. Found through the entry points `brainq.cells`."""
