"""Training and evaluation helpers of the contrastive sentence embedding course."""

import logging

# Jupyter interrupts an idle kernel before it stops it, and ipykernel logs this as an error at the
# end of a run that succeeded.
logging.getLogger("IPKernelApp").addFilter(
    lambda record: "KeyboardInterrupt caught in kernel" not in record.getMessage()
)
