"""What the files of a model's folder are called, for those who fetch them and those who read them.

It loads nothing, so that a model is fetched without torch.
"""

CONFIG_FILE = "config.json"
TASK_FILE = "task.json"  # of a model for a task: what it takes and how it answers
REWRITER_FILE = "bertkit_seq2seq.json"  # the same of a model that writes
MODULES_FILE = "modules.json"  # of sentence-transformers
MAX_MODULES = 16  # published models have two to five
MODULES_LIMIT_BYTES = 1 << 20

SAFETENSORS_FILE = "model.safetensors"
PYTORCH_FILE = "pytorch_model.bin"
INDEX_SUFFIX = ".index.json"  # of either, where the weights are in several files
CONFIG_LIMIT_BYTES = 16 << 20  # a classifier's names each label twice
INDEX_LIMIT_BYTES = 16 << 20
