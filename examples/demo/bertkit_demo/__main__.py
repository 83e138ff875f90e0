"""`python -m bertkit_demo`: the demo from the sources, where no package is installed."""

from cyclopts import run

from bertkit_demo.command import demo

if __name__ == "__main__":
    run(demo)
