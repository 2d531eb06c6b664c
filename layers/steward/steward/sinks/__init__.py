"""Adapters that tell the world: Slack, the bus and the queues."""
