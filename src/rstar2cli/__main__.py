"""``python -m rstar2cli``, and what ``accelerate launch -m rstar2cli`` starts."""

from rstar2cli.cli.app import main

if __name__ == "__main__":
    main()
