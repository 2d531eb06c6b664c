"""The one logger; every function logs one outcome line an invocation."""

from aws_lambda_powertools import Logger

logger = Logger(service="gpu-steward")
