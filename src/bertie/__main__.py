"""`python -m bertie`, which is also how torchrun starts it."""

from bertie.cli.app import main

if __name__ == "__main__":
    main()
