"""An embedder is a transformer of scikit-learn: its own checks, where they apply to texts."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks, get_tags
from tests.closeness import close

from bertkit import Embedder, EmbedderSettings
from bertkit.base.errors import InputError, SettingsError

TEXTS = ["the cat saw", "a dog lost the hat", "the hat", "dogs saw a cat"] * 3
LABELS = [0, 1, 1, 0] * 3
# Those that need no numbers as input, nor a constructor that takes the parameters.
CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_mixin_order",
    "check_get_params_invariance",
    "check_set_params",
)


@pytest.fixture
def embedder(small_folder):
    return Embedder.load(small_folder, EmbedderSettings(engine="torch", precision="fp32"))


@pytest.mark.filterwarnings("ignore:.*delay parameter validation until fit")
@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn(name, embedder):
    getattr(estimator_checks, name)("Embedder", embedder)


def test_it_needs_no_fitting_and_takes_texts(embedder):
    tags = get_tags(embedder)
    assert (tags.requires_fit, tags.input_tags.string, tags.input_tags.two_d_array) == (
        False,
        True,
        False,
    )
    assert embedder.fit(TEXTS, LABELS) is embedder
    expected = embedder(TEXTS)
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS), iter(TEXTS)):
        np.testing.assert_array_equal(embedder.transform(texts), expected)
    np.testing.assert_array_equal(embedder.fit_transform(TEXTS, LABELS), expected)
    assert list(embedder.get_feature_names_out()[:2]) == ["embedder0", "embedder1"]
    assert len(embedder.get_feature_names_out()) == expected.shape[1]


def test_a_clone_shares_the_model_and_has_parameters_of_its_own(embedder):
    copy = clone(embedder)
    assert copy is not embedder
    assert copy.engine is embedder.engine
    copy.set_params(pooling=("cls",))
    assert (copy.get_params()["pooling"], embedder.get_params()["pooling"]) == (("cls",), None)
    assert copy(TEXTS) != close(embedder(TEXTS))


def test_a_parameter_that_is_wrong_changes_nothing(embedder):
    before = embedder.get_params()
    with pytest.raises(SettingsError, match="no parameter pool; there are model, device"):
        embedder.set_params(pool="cls")
    with pytest.raises(SettingsError, match="max_length is 99"):
        embedder.set_params(max_length=99)
    assert embedder.get_params() == before


def test_it_stands_in_pipelines_searches_and_processes(embedder):
    pipeline = make_pipeline(embedder, LogisticRegression())
    search = GridSearchCV(pipeline, {"embedder__pooling": [("cls",), ("mean",)]}, cv=2)
    search.fit(TEXTS, LABELS)
    assert set(search.predict(TEXTS)) <= {0, 1}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(TEXTS), search.predict(TEXTS))


def test_a_table_is_not_taken_for_its_columns(embedder):
    frame = pd.DataFrame({"text": TEXTS, "size": LABELS})
    columns = ColumnTransformer([("text", embedder, "text")], remainder="passthrough")
    assert columns.fit_transform(frame).shape == (len(TEXTS), embedder.dimension + 1)
    for call in (embedder.transform, embedder, partial(embedder.fit_transform, y=LABELS)):
        with pytest.raises(InputError, match="expected a list, got DataFrame"):
            call(frame)
    with pytest.raises(InputError, match="put it into a list"):
        embedder.transform("the cat")


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_tables_come_out_where_they_are_asked_for(embedder, package):
    library = pytest.importorskip(package)
    expected = embedder(TEXTS)
    names = list(embedder.get_feature_names_out())
    assert clone(embedder).set_output(transform=package) is not embedder
    pipeline = make_pipeline(embedder, StandardScaler()).set_output(transform=package)
    scaled = pipeline.fit_transform(TEXTS)
    assert isinstance(scaled, library.DataFrame)
    assert list(scaled.columns) == names == list(pipeline[0].transform(TEXTS).columns)
    assert pipeline[0].transform(TEXTS).to_numpy() == close(expected)
    frame = pd.DataFrame({"text": TEXTS, "size": LABELS})
    frame = frame if package == "pandas" else library.from_pandas(frame)
    columns = ColumnTransformer([("text", clone(embedder), "text")], remainder="passthrough")
    table = columns.set_output(transform=package).fit_transform(frame)
    assert list(table.columns) == [f"text__{name}" for name in names] + ["remainder__size"]
    assert list(columns.get_feature_names_out()) == list(table.columns)


def test_a_choice_of_output_is_kept_and_undone(embedder):
    column = pd.Series(TEXTS, index=[f"row {number}" for number in range(len(TEXTS))])
    asked = clone(embedder).set_output(transform="pandas")
    for each in (asked, clone(asked), pickle.loads(pickle.dumps(asked))):
        assert list(each.transform(column).index) == list(column.index)
    asked.set_params(pooling=("cls",))
    assert isinstance(asked.set_output().transform(TEXTS), pd.DataFrame)
    assert isinstance(asked.set_output(transform="default").transform(column), np.ndarray)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(embedder.transform(TEXTS), pd.DataFrame)
        assert isinstance(asked.transform(TEXTS), np.ndarray)
    with pytest.raises(SettingsError, match="transform is 'arrow'; expected default, pandas"):
        embedder.set_output(transform="arrow")
