"""Remember: S3 objects, DynamoDB rows and the policy file, each behind a port."""
