"""The tools of brainq's developers: benchmarks, faults, seeded bugs, simulation, releases. Nothing here is
installed."""
