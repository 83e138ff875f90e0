"""Numbers in sentences."""


def pluralize(number: float, noun: str, plural: str | None = None) -> str:
    """A count with its noun: "1 text", "2,000 texts", "0.5 epochs".

    Args:
        number: shown with three digits where it isn't whole.
        noun: in the singular.
        plural: by default the noun with an s.
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.3g}"
    return f"{shown} {noun if shown == '1' else plural or f'{noun}s'}"
