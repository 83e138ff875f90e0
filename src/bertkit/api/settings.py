"""Settings as keyword arguments: their names and defaults are a function's signature."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bertkit.base.errors import SettingsError
from bertkit.base.settings import AnyModel, Settings, validate

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_settings(*kinds: type[Settings]) -> Callable[[Function], Function]:
    """Give a function with `**settings` the signature with all fields of these settings.

    Notebooks and `help` show it; `typed.pyi` has the same for editors. A field that several kinds
    have is shown as in the first of them.
    """

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        *parameters, last = own.parameters.values()
        assert last.kind is inspect.Parameter.VAR_KEYWORD
        cast("Any", function).__signature__ = own.replace(parameters=add_fields(parameters, kinds))
        return function

    return decorate


def add_fields(
    parameters: Sequence[inspect.Parameter], kinds: Sequence[type[Settings]]
) -> list[inspect.Parameter]:
    """Return parameters, and one for each field of settings that isn't among them."""
    named = {parameter.name for parameter in parameters}
    fields: dict[str, FieldInfo] = {}
    for kind in kinds:
        fields |= {name: one for name, one in kind.model_fields.items() if name not in fields}
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if info.default is PydanticUndefined else info.default,
            annotation=strip(info.annotation),
        )
        for name, info in fields.items()
        if name not in named
    ]
    return [*parameters, *added]


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


def build(kind: type[AnyModel], values: Mapping[str, Any], name: str) -> AnyModel:
    """Build settings from the keyword arguments of the function of this name."""
    unknown = [key for key in values if key not in kind.model_fields]
    if unknown:
        raise SettingsError(
            f"{name} has no setting {', '.join(unknown)}; help(bertkit.{name}) lists them"
        )
    return validate(kind, dict(values), name)


def divide(values: Mapping[str, Any], *kinds: type[Settings]) -> list[dict[str, Any]]:
    """Divide keyword arguments among several kinds of settings; the last takes the unknown."""
    parts: list[dict[str, Any]] = [{} for _ in kinds]
    for key, value in values.items():
        owners = [part for part, kind in zip(parts, kinds, strict=True) if key in kind.model_fields]
        (owners or parts[-1:])[0][key] = value
    return parts


def build_each(name: str, values: Mapping[str, Any], *kinds: type[Settings]) -> list[Any]:
    """Build several kinds of settings from the keyword arguments of the function of this name."""
    parts = divide(values, *kinds)
    return [build(kind, part, name) for kind, part in zip(kinds, parts, strict=True)]
