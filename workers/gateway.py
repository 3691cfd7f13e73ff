"""`python -m workers.gateway`: in this repository, a short name for `brainq.workers.gateway`."""

from brainq.workers.gateway import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
