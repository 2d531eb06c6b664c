"""What the `preemptions` detector works with: counts, runs, losses, jobs in circles."""
