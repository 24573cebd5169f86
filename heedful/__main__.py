"""`python -m heedful` is the same program as `heedful`, so that torchrun can start it."""

from heedful.cli import main

if __name__ == "__main__":
    main()
