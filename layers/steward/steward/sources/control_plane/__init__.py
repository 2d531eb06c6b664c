"""SageMaker and EKS, read into the nouns."""
