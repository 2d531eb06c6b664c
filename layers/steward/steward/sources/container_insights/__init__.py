"""Accelerator and Kueue metrics from CloudWatch Container Insights."""
