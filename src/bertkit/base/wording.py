"""Formatting of counts in messages."""


def pluralize(number: float, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun: "1 text", "2,000 texts", "0.5 epochs".

    Args:
        number: the count; below 100 it is shown with up to three significant digits.
        noun: the singular form.
        plural: the plural form; by default the noun with an s.
    """
    shown = f"{number:,.3g}" if number < 100 else f"{number:,.0f}"
    return f"{shown} {noun if shown == '1' else plural or f'{noun}s'}"
