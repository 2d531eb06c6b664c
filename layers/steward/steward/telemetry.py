"""The one logger; every function logs one outcome line an invocation."""

import logging

from aws_lambda_powertools import Logger

logger = Logger(service="gpu-steward")

# At INFO botocore tells at every cold start where it found its credentials: noise, never an outcome.
logging.getLogger("botocore").setLevel(logging.WARNING)
