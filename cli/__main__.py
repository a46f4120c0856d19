"""`python -m cli` is `lorebus`."""

from cli.main import main

if __name__ == "__main__":
    main()
