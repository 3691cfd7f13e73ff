"""The steps that every request passes: authentication, access, limits and problems."""
