"""`python -m tools.mini_data [--out DIR]` writes the mini data set."""

from tools.mini_data.build import main

if __name__ == "__main__":
    main()
