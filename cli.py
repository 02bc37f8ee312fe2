"""The front door of a checkout: `python cli.py …` is the installed `dataforge …`."""

from dataforge.commands.app import main

if __name__ == "__main__":
    main()
