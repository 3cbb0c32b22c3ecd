"""What happened in a run, and why."""
