"""Accelerator and Kueue metrics from Prometheus or Amazon Managed Prometheus."""
