"""What the `capacity` detector works with: nodes, instances that do not come, quotas that nodes cannot serve."""
