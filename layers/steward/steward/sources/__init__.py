"""Adapters that read the world: SageMaker and EKS, Kubernetes, Prometheus."""
