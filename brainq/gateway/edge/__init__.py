"""The edge: authentication, access, limits and problems, which every request passes."""
