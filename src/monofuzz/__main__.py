"""`python -m monofuzz` is the command line."""

from __future__ import annotations

from monofuzz.cli.main import main

if __name__ == "__main__":
    main()
