"""`python -m dataforge …` is `dataforge …`."""

from dataforge.commands.app import main

main()
