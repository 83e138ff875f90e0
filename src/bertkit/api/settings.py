"""What the public functions have in common: settings as keyword arguments, an end in one line."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from bertkit.base.errors import SettingsError, StoppedError
from bertkit.base.settings import AnyModel, Settings, describe_validation, hint_at
from bertkit.base.signals import interruptible

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def takes(
    *kinds: type[Settings],
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Let the `**settings` of a function be the fields of classes of settings.

    `help` and notebooks show each with its default. Type checkers read them in the `keywords.pyi`
    beside the function, which `make reference` writes from the same classes. Other keyword
    arguments are refused, and Ctrl-C ends the function without the traceback of what it computed.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        name = function.__name__
        shown = show_fields(inspect.signature(function), kinds)

        @wraps(function)
        def call(*arguments: Arguments.args, **values: Arguments.kwargs) -> Result:
            check_names(values, shown.parameters, name)
            try:
                shown.bind(*arguments, **values)
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
            try:
                with interruptible():
                    return function(*arguments, **values)
            except StoppedError as error:
                raise error.with_traceback(None) from None
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"bertkit.{name} was interrupted") from None

        vars(call).update(__signature__=shown, settings_kinds=kinds)
        return call

    return decorate


def build(kind: type[AnyModel], values: Mapping[str, object]) -> AnyModel:
    """Build settings from those keyword arguments that are fields of their class."""
    try:
        return kind(**{name: value for name, value in values.items() if name in kind.model_fields})
    except ValidationError as error:
        raise SettingsError(describe_validation(error, kind)) from None


def check_names(values: Iterable[str], known: Collection[str], name: str) -> None:
    """Refuse keyword arguments that the function of this name doesn't have."""
    for value in values:
        if value not in known:
            hint = hint_at(value, known) or f"; help(bertkit.{name}) lists them"
            raise SettingsError(f"{name} has no setting {value}{hint}")


def show_fields(signature: inspect.Signature, kinds: Iterable[type[Settings]]) -> inspect.Signature:
    """Return a signature with the fields of settings in place of its `**settings`.

    A field that several kinds have is shown as in the first of them.
    """
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if info.is_required() else info.default,
            annotation=strip(info.annotation),
        )
        for name, info in list_fields(kinds).items()
        if name not in signature.parameters
    ]
    return signature.replace(parameters=[*own, *added])


def list_fields(kinds: Iterable[type[Settings]]) -> dict[str, FieldInfo]:
    """Return the fields of classes of settings, those that a class adds before the inherited."""
    fields: dict[str, FieldInfo] = {}
    for kind in kinds:
        for name in (*kind.__annotations__, *kind.model_fields):
            if name in kind.model_fields:
                fields.setdefault(name, kind.model_fields[name])
    return fields


def strip(annotation: Any) -> Any:
    """Return a type without the limits of its values."""
    if get_origin(annotation) is Annotated:
        return strip(get_args(annotation)[0])
    if isinstance(annotation, type) or not hasattr(annotation, "__or__"):
        return annotation
    parts = get_args(annotation)
    if get_origin(annotation) is Literal or type(None) not in parts:
        return annotation
    joined = strip(parts[0])
    for part in parts[1:]:
        joined = joined | strip(part)
    return joined
