"""Functions whose keyword arguments are the fields of a settings class.

The class says once what they are called, what they take and their defaults: editors and checkers
know its constructor (`dataclass_transform`), notebooks and `help` read its fields.
"""

import inspect
from collections.abc import Callable, Container, Iterable, Mapping
from functools import wraps
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    overload,
)

from pydantic import ConfigDict
from pydantic.fields import FieldInfo

from bertkit.base.errors import SettingsError, StoppedError
from bertkit.base.settings import Settings, validate
from bertkit.base.signals import interruptible
from bertkit.data.tables.settings import TableSettings


class Call(Settings):
    """The keyword arguments of a function; a `SkipValidation` is checked where it is read."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


class TextsCall(TableSettings, Call):
    """The keyword arguments of a function of texts, which may be in files."""


Function = TypeVar("Function", bound=Callable[..., Any])
AnyCall = TypeVar("AnyCall", bound=Call)
Given_co = TypeVar("Given_co", covariant=True)
First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")
Keywords = ParamSpec("Keywords")


def ends_in_one_line(function: Function) -> Function:
    """Refuse arguments that a function doesn't show; let Ctrl-C end it without a traceback."""
    name = function.__name__

    @wraps(function)
    def call(*arguments: Any, **values: Any) -> Any:
        shown = inspect.signature(call)
        check_names(values, shown.parameters, name)
        try:
            bound = shown.bind(*arguments, **values)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        try:
            with interruptible():
                return function(*bound.args, **bound.kwargs)
        except StoppedError as error:
            raise error.with_traceback(None) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"bertkit.{name} was interrupted") from None

    return cast("Function", call)


class Decorator(Protocol[Given_co, Keywords]):
    """Turns a function of a call, and up to two arguments, into one with the call's keywords."""

    @overload
    def __call__(self, function: Callable[[Given_co], Result]) -> Callable[Keywords, Result]: ...

    @overload
    def __call__(
        self, function: Callable[[Given_co, First], Result]
    ) -> Callable[Concatenate[First, Keywords], Result]: ...

    @overload
    def __call__(
        self, function: Callable[[Given_co, First, Second], Result]
    ) -> Callable[Concatenate[First, Second, Keywords], Result]: ...


def takes(kind: Callable[Keywords, AnyCall]) -> Decorator[AnyCall, Keywords]:
    """Let a function take the fields of a call as keyword arguments, and end in one line."""
    call_kind = cast("type[AnyCall]", kind)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__

        @ends_in_one_line
        @wraps(function)
        def take(*arguments: Any, **values: Any) -> Any:
            return function(validate(call_kind, values, name), *arguments)

        signature = inspect.signature(function, follow_wrapped=False)
        _, *parameters = signature.parameters.values()
        show_fields(take, signature.replace(parameters=parameters), call_kind)
        return take

    return cast("Decorator[AnyCall, Keywords]", decorate)


def takes_any(kind: type[Call]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Do the same as `takes` for the implementation behind `@overload`s."""
    return cast("Callable[[Callable[..., Any]], Callable[..., Any]]", takes(kind))


def show_fields(function: Any, signature: inspect.Signature, *kinds: type[Settings]) -> None:
    """Let notebooks and `help` show the fields of settings as a function's keyword arguments.

    They replace its `**settings`. A field that several kinds have is shown as in the first of them.
    """
    fields: dict[str, FieldInfo] = {}
    for kind in kinds:
        first = [name for name in kind.__annotations__ if name in kind.model_fields]
        for name in (*first, *kind.model_fields):
            fields.setdefault(name, kind.model_fields[name])
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if info.is_required() else info.default,
            annotation=strip(info.annotation),
        )
        for name, info in fields.items()
    ]
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=[*own, *added])


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


def check_names(values: Iterable[str], known: Container[str], name: str) -> None:
    """Refuse keyword arguments that the function of this name doesn't have."""
    if unknown := [key for key in values if key not in known]:
        raise SettingsError(
            f"{name} has no setting {', '.join(unknown)}; help(bertkit.{name}) lists them"
        )


def divide(values: Mapping[str, Any], name: str, *kinds: type[Settings]) -> list[Any]:
    """Build several kinds of settings from the keyword arguments of the function of this name."""
    check_names(values, {field for kind in kinds for field in kind.model_fields}, name)
    return [
        validate(
            kind, {key: value for key, value in values.items() if key in kind.model_fields}, name
        )
        for kind in kinds
    ]
