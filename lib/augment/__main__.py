"""`python -m lib.augment METHOD IN.txt OUT.txt`: augment a text file line by line (`workflow.augment`)."""

import sys

if __name__ == "__main__":
    from workflow.augment import main

    sys.exit(main())
