"""GPU Steward: event-driven governance for shared GPU clusters on SageMaker HyperPod (EKS, Kueue)."""
