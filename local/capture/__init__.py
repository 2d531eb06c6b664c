"""Records a live cluster into a recording (docs/capture.md), without its people and secrets.

What is asked, and how: `looks` (Kubernetes, SageMaker, EKS, as they are now), `chunks` (metrics of
the past). What is left of an answer: `kubernetes_scrub`, `aws_scrub`, `names`. `capture` joins them.
"""
