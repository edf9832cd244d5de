"""`python -m lib.course`: every notebook, or one with parameters, through papermill (`workflow.course`)."""

import sys

if __name__ == "__main__":
    from workflow.course import main

    sys.exit(main())
