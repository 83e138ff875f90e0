"""What counts as another beginning."""

from bertkit.retrieval.vector_file import VectorsFingerprint


def beginning(model: str, sha256: str, *, pooling: str = "mean") -> VectorsFingerprint:
    return VectorsFingerprint(
        embedding={"model": model, "model_sha256": sha256, "vector": pooling}, input=None
    )


def test_a_model_is_known_by_its_files_whatever_its_folder_is_called():
    before = beginning("minilm", "11")
    assert before.list_changes(beginning("a copy", "11")) == []
    assert before.list_changes(beginning("minilm", "22")) == ['model_sha256: "11" → "22"']
    assert before.list_changes(beginning("other", "22")) == [
        'model: "minilm" → "other"',
        'model_sha256: "11" → "22"',
    ]
    assert before.list_changes(beginning("a copy", "11", pooling="cls")) == [
        'vector: "mean" → "cls"'
    ]
