"""The command `nmt`; `python -m nmt` is the same."""

from nmt.system.signals import exit_on_interrupt


def main() -> None:
    """Run the command line."""
    exit_on_interrupt()
    from nmt.interface.app import main as run

    run()


if __name__ == "__main__":
    main()
