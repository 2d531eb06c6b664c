"""Records a live cluster into a recording (docs/capture.md), without its people and secrets.

What is asked, and how: `looks` with `kubectl` and `control_plane` (Kubernetes, SageMaker and EKS, as
they are now), `prometheus` and `insights` (metrics of the past, in the pieces that `chunks` cuts).
What is left of an answer: `kubernetes_scrub`, `aws_scrub`, `policy_copy`, `names`. `capture` joins
them; `state` lets it go on after a break.
"""
