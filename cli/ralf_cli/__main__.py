"""`python -m ralf_cli`: the same command as `ralf`."""

from ralf_cli.start import run

if __name__ == "__main__":
    run()
