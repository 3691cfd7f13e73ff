"""Writes the dashboard."""

from __future__ import annotations

from ops.grafana.dashboard import FILE, text

if __name__ == "__main__":
    FILE.write_text(text())
    print(f"{FILE}: written")
