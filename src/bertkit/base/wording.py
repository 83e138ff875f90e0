"""Numbers in sentences."""


def pluralize(number: float, noun: str, plural: str | None = None) -> str:
    """A count with its noun: "1 text", "2,000 texts", "0.5 epochs".

    Args:
        number: below 100, one that isn't whole is shown with three digits.
        noun: in the singular.
        plural: by default the noun with an s.
    """
    shown = f"{number:,.3g}" if number < 100 else f"{number:,.0f}"
    return f"{shown} {noun if shown == '1' else plural or f'{noun}s'}"
