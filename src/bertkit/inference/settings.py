"""How a model is loaded; settings and the command line import this without torch."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, Field

from bertkit.base.errors import SettingsError
from bertkit.base.settings import Settings, validate
from bertkit.tasks.settings import TOP_K

AnySettings = TypeVar("AnySettings", bound=Settings)

EngineName: TypeAlias = Literal["auto", "torch", "openvino"]
Precision: TypeAlias = Literal["fp32", "bf16", "int8"]
PrecisionName: TypeAlias = Literal["auto", "fp32", "bf16", "int8"]


class LoadingSettings(Settings):
    """What a model is computed on and in, and which version of it is loaded."""

    device: str = Field(default="auto", description="auto, cpu, cuda or cuda:N.")
    revision: str | None = Field(
        default=None, description="Branch, tag or commit of a model of the Hub."
    )
    precision: PrecisionName = Field(
        default="auto",
        description="Precision of weights and matrix products: fp32 (auto) or bf16; here int8 is"
        " refused.",
    )


class EngineSettings(LoadingSettings):
    """The same of an encoder, which an engine computes."""

    engine: EngineName = Field(
        default="auto",
        description="Runtime of the encoder: openvino for CPUs, torch for GPUs and for models that"
        " read left to right; auto selects it.",
    )
    precision: PrecisionName = Field(
        default="auto",
        description="Precision of matrix products. auto takes bf16 on GPUs and processors where it"
        " was measured to be faster, else fp32; bertkit devices shows which. int8: integers for the"
        " matrices of linear layers, faster on processors with avx512_vnni, avx_vnni or amx_int8,"
        " less exact.",
    )


class FillOptions(Settings):
    """Options of fill-mask."""

    top_k: int = Field(default=5, ge=1, description=TOP_K)
    targets: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Consider only these words; probabilities aren't renormalized.",
    )


def take_settings(kind: type[AnySettings], values: Mapping[str, Any], name: str) -> AnySettings:
    """Build settings from the keyword arguments of a class or function of this name."""
    check_names(kind, values, name)
    return validate(kind, values, name)


def check_names(kind: type[BaseModel], names: Iterable[str], owner: str) -> None:
    """Raise SettingsError for names that aren't fields of the settings of something."""
    if unknown := [name for name in names if name not in kind.model_fields]:
        known = ", ".join(kind.model_fields) or "none"
        raise SettingsError(f"{owner} has no setting {', '.join(unknown)}; it has {known}")
