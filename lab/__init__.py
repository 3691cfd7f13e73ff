"""The tools of the developers: benchmarks, faults, seeded bugs, simulation, releases. They are not installed."""
