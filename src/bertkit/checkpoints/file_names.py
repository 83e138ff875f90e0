"""File names and size limits of model folders, for downloading and for reading; without torch."""

from bertkit.base import wings

CONFIG_FILE = "config.json"
TASK_FILE = "task.json"  # of a fine-tuned model: its task's inputs and outputs
MODULES_FILE = "modules.json"  # of sentence-transformers
MAX_MODULES = 16  # published models have two to five
MODULES_LIMIT_BYTES = 1 << 20

SAFETENSORS_FILE = "model.safetensors"
PYTORCH_FILE = "pytorch_model.bin"
# Where the Hub's folders have them, and transformers.js and Optimum look for them.
ONNX_FILE = "onnx/model.onnx"
QUANTIZED_FILE = "onnx/model_quantized.onnx"  # with matrices of integers
DATA_SUFFIX = "_data"  # suffix for either, of its weights if it would be too large
# Of a LoRA adapter in PEFT's format, which names the model that it adapts.
ADAPTER_CONFIG_FILE = "adapter_config.json"
ADAPTER_SAFETENSORS_FILE = "adapter_model.safetensors"
ADAPTER_PYTORCH_FILE = "adapter_model.bin"
ADAPTED_FILE = "adapted_config.json"  # bertkit's: beside config.json, others would expect weights
INDEX_SUFFIX = ".index.json"  # suffix for either file name, where the weights are sharded
CONFIG_LIMIT_BYTES = 16 << 20  # a classifier's config names each label twice
INDEX_LIMIT_BYTES = 16 << 20

# Small files that describe a model, and the forms of its weights, of which the first is taken.
DESCRIPTIONS = (
    *(CONFIG_FILE, ADAPTER_CONFIG_FILE, ADAPTED_FILE),
    *("vocab.txt", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json"),
    *(TASK_FILE, *wings.DESCRIPTIONS),
    *(MODULES_FILE, "sentence_bert_config.json", "config_sentence_transformers.json"),
)
ADAPTERS = (ADAPTER_SAFETENSORS_FILE, ADAPTER_PYTORCH_FILE)
WEIGHTS = (
    SAFETENSORS_FILE,
    SAFETENSORS_FILE + INDEX_SUFFIX,
    PYTORCH_FILE,
    PYTORCH_FILE + INDEX_SUFFIX,
    ONNX_FILE,
    QUANTIZED_FILE,
)
