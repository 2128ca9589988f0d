"""``python -m unity``: the command."""

from unity.cli.app import main

if __name__ == "__main__":
    main()
