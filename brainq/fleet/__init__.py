"""The fleet: its workers, queues and builds at one moment, what is wrong with it, and how many workers it needs."""
