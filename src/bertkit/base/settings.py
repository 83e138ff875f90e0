"""The base class of settings: one definition serves flags, TOML, documentation and saved copies."""

import hashlib
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from difflib import get_close_matches
from numbers import Integral
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from cyclopts import Group, Parameter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from bertkit.base.errors import BertkitError, SettingsError

MAX_NAME_CHARS = 80
FEWEST_LETTERS = 3  # of a beginning that stands for the whole name
LEAST_ALIKE = 0.8  # share of letters that two names have in common, if one may be meant for another
MAX_PROBLEMS = 20  # a foreign file may have any number of wrong keys
WHOLE_NUMBERS = 1e15  # a larger float is typed with an exponent
MAX_SHOWN_CHARS = 200  # of a value: a model may have thousands of labels

FLAG_NAMES = {"key_file": "keys"}  # the others are those of the settings

# Fields that are annotated with the next line, by name, so that messages don't show them as flags.
WITHOUT_FLAG = frozenset(
    {
        "all_entries",
        "alphabet_limit",
        "beta1",
        "beta2",
        "classifier_dropout",
        "clip_norm",
        "diversity",
        "false_negative_margin",
        "initialization",
        "has_scores",
        "label_smoothing",
        "layer_decay",
        "loss_temperature",
        "mask_token_share",
        "matryoshka",
        "muon_learning_rate",
        "max_answer_length",
        "max_question_length",
        "min_frequency",
        "n_best",
        "negative_column",
        "negative_margin",
        "negative_ranks",
        "num_layers",
        "num_negatives",
        "pairs",
        "passage_overlap",
        "passage_tokens",
        "positive_label",
        "prompts",
        "random_token_share",
        "short_rate",
        "split_cjk",
        "split_seed",
        "symmetric",
        "teacher",
        "where",
    }
)
NO_FLAG = Parameter(parse=False)  # of a field that is set in Python only, as studies do
Count = Annotated[int, Field(ge=1)]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80  # characters


@Parameter(name="*")  # the fields are flags of the command that has such a parameter
class Settings(BaseModel):
    """Base of all settings: immutable, and a key that it doesn't know is an error.

    Each field carries its meaning, unit and range in `Field(description=…)`, which is what
    `--help` and the reference show.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the settings; equal settings have equal fingerprints."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


AnyModel = TypeVar("AnyModel", bound=BaseModel)


def in_panel(title: str, order: int, *names: str) -> Callable[[type[AnyModel]], type[AnyModel]]:
    """Show fields that a class of settings defines in a panel of their own in `--help`.

    Args:
        order: its place; the panel with a command's other flags has 1.
    """

    def decorate(kind: type[AnyModel]) -> type[AnyModel]:
        for name in names or kind.__annotations__:
            if name in kind.model_fields:
                panel = Parameter(group=Group(title, sort_key=order))
                kind.model_fields[name].metadata.append(panel)
        return kind

    return decorate


def redefine(kind: type[BaseModel], name: str, *default: object, shown: str | None = None) -> Any:
    """Return a field of another class, so that a setting is described once.

    Args:
        default: the new class's own, if it has one.
        shown: what the help shows as the default, if that isn't one value.
    """
    field = copy(kind.model_fields[name])
    if default:
        [field.default] = default
    if shown is not None:
        field.metadata = [*field.metadata, Parameter(show_default=shown)]
    return field


def validate(
    kind: type[AnyModel],
    values: object,
    message: str,
    error_kind: type[BertkitError] = SettingsError,
) -> AnyModel:
    """Build settings, or another model, from untrusted values.

    The problems of its fields follow the message, in an error of `error_kind`.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise error_kind(f"{message}: {describe_validation(error, kind)}") from None


def select(kind: type[AnyModel], settings: BaseModel) -> AnyModel:
    """Return those settings of an object that are fields of another class."""
    given = settings.model_fields_set & kind.model_fields.keys()
    return kind(**{name: getattr(settings, name) for name in given})


FIELD_NAME = re.compile("`([a-z][a-z_]*)`")  # in messages of validators
Place = tuple[str | int, ...]  # a field, then the keys and indices within its value


# What a value must be or have, by pydantic's type of error; braces hold its limits.
EXPECTED = {
    **dict.fromkeys(("bool_parsing", "bool_type"), "be true or false"),
    "callable_type": "be a function",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "be a mapping"),
    **dict.fromkeys(("enum", "literal_error"), "be {expected}"),
    "finite_number": "be a finite number",
    **dict.fromkeys(("float_parsing", "float_type"), "be a number"),
    "greater_than": "be greater than {gt}",
    "greater_than_equal": "be at least {ge}",
    **dict.fromkeys(("int_from_float", "int_parsing", "int_type"), "be a whole number"),
    "int_parsing_size": "be a smaller whole number",
    "less_than": "be less than {lt}",
    "less_than_equal": "be at most {le}",
    **dict.fromkeys(("list_type", "tuple_type"), "be a list"),
    "path_type": "be a path",
    "string_pattern_mismatch": "match {pattern}",
    "string_too_long": "have {max_length} or fewer characters",
    "string_too_short": "have {min_length} or more characters",
    "string_type": "be text",
    "too_long": "have {max_length} or fewer values",
    "too_short": "have {min_length} or more values",
}


def describe_validation(
    error: ValidationError,
    kind: type[BaseModel] | None = None,
    *,
    shows_input: bool = True,
    are_flags: bool = False,
) -> str:
    """Describe in one line which fields are wrong, and why: `top_k must be at least 1, got 0`.

    Given the class, a field that takes one of several types is named once: with what each type
    expects, or if one takes the value but not its parts, with the wrong parts; and the nearest
    field follows an unknown one. Messages of validators have the names of fields in backticks,
    which are left out.

    Args:
        shows_input: end with what came instead.
        are_flags: name fields as on the command line, such as `--top-k`.
    """
    found: dict[Place, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        found.setdefault(_find_place(detail["loc"], kind), []).append(detail)
    wholes = {place[:length] for place in found for length in range(len(place))}
    places = [place for place in found if place not in wholes]
    problems = []
    for place in places[:MAX_PROBLEMS]:
        name = name_flag(str(place[0])) if place and are_flags else ".".join(map(str, place))
        if not name.isprintable() or len(name) > MAX_NAME_CHARS:  # it may come from a foreign file
            name = ascii(name[:MAX_NAME_CHARS])
        problem = _describe(name, found[place], shows_input)
        problem = FIELD_NAME.sub(lambda one: name_flag(one[1]) if are_flags else one[1], problem)
        is_unknown = len(place) == 1 and found[place][0]["type"] == "extra_forbidden"
        problems.append(problem + hint_at(name, kind.model_fields if kind and is_unknown else ()))
    more = len(places) - MAX_PROBLEMS
    return "; ".join(problems) + (f"; and {more} more" if more > 0 else "")


def hint_at(name: str, known: Collection[str]) -> str:
    """Return the end of a message on an unknown name: the nearest that is known, if any is near."""
    near = find_near(name, known)
    return f"; did you mean {near[0]}?" if near else ""


def find_near(name: str, names: Collection[str]) -> list[str]:
    """Return the nearest of the names, or else the first that begins with this one, if any does."""
    begun = [one for one in sorted(names) if len(name) >= FEWEST_LETTERS and one.startswith(name)]
    return get_close_matches(name, sorted(names), n=1, cutoff=LEAST_ALIKE) or begun[:1]


def _find_place(location: Place, kind: type[BaseModel] | None) -> Place:
    """Leave out what pydantic adds after a field of several types: the name of one of them."""
    field = kind.model_fields.get(str(location[0])) if kind and location else None
    is_union = field is not None and get_origin(field.annotation) in {Union, UnionType}
    types = get_args(field.annotation) if field is not None and is_union else ()
    has_several = sum(type_ is not NoneType for type_ in types) > 1
    return location[:1] + location[2:] if has_several else location


def _describe(name: str, details: list[ErrorDetails], shows_input: bool) -> str:
    """Return what is wrong with the value of this name, and what each of its types expects."""
    kind, message, value = (details[0][key] for key in ("type", "msg", "input"))
    if kind in {"extra_forbidden", "missing"}:
        return f"{name} is {'missing' if kind == 'missing' else 'unknown'}"
    wanted = list(dict.fromkeys(map(_describe_type, details)))
    if None in wanted:  # a check of our own
        message = message.removeprefix("Value error, ")
        return f"{name}: {message}".removeprefix(": ").replace(": must ", " must ", 1)
    is_number = kind.startswith(("greater", "less")) and isinstance(value, str)
    shown = _shorten(value.strip()) if is_number else _SHORT.repr(value)
    came = f", got {shown}" if shows_input else ""
    must = " or ".join(filter(None, wanted)).replace(" or be ", " or ")
    return f"{name or 'the value'} must {must}{came}"


def _describe_type(detail: ErrorDetails) -> str | None:
    """Return what a value must be, or have, for one type; None if that isn't what is wrong."""
    limits = {name: _type(value) for name, value in detail.get("ctx", {}).items()}
    if detail["type"] in EXPECTED:
        return EXPECTED[detail["type"]].format_map(limits)
    message = detail["msg"].removeprefix("Input should ")
    return None if message == detail["msg"] else message


def name_flag(name: str) -> str:
    """Return the flag of a setting, such as `--top-k`, or the name of one that has none."""
    if name in WITHOUT_FLAG:
        return name
    return "--" + FLAG_NAMES.get(name, name).replace("_", "-")


def check_count(name: str, value: Any) -> None:
    """Raise `SettingsError` if an argument is neither None nor a whole number of at least 1."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (is_whole and value >= 1):
        raise SettingsError(f"{name} must be a whole number of at least 1, got {value!r}")


def list_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], names: Iterable[str] | None = None
) -> list[str]:
    """List the values that differ, as `name: old → new`; by default those of all names, sorted."""
    differences = []
    for name in sorted(old.keys() | new.keys()) if names is None else names:
        before, now = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            differences += [f"{name}.{one}" for one in list_differences(before, now)]
        elif before != now:
            differences.append(f"{name}: {_shorten(repr(before))} → {_shorten(repr(now))}")
    return differences


def list_flag_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], names: Iterable[str] | None = None
) -> list[str]:
    """List the settings that differ as they are typed: `--epochs 3 → not given`.

    Arguments are those of `list_differences`.
    """
    differences = []
    for name in sorted(old.keys() | new.keys()) if names is None else names:
        before, now = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            differences += list_flag_differences(before, now)
        elif before != now:
            differences.append(f"{name_flag(name)} {_type(before)} → {_type(now)}")
    return differences


def _type(value: object) -> str:
    """Return a setting's value as it is typed after its flag."""
    if value is None:
        return "not given"
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_NUMBERS:
        value = int(value)  # 5 was typed, not 5.0
    return _shorten(str(value).lower() if isinstance(value, bool) else str(value))


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def replace_surrogates(value: Any) -> Any:
    """Replace surrogate escapes (bytes that aren't Unicode) with U+FFFD, in nested values too."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, list | tuple):
        return type(value)(map(replace_surrogates, value))
    if isinstance(value, dict):
        return {key: replace_surrogates(part) for key, part in value.items()}
    return value
