"""The command `bertkit serve`."""

from bertkit.base.errors import MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.base.settings import replace_surrogates
from bertkit.serving.settings import ServeSettings


def serve(*models: str, settings: ServeSettings = ServeSettings()) -> None:
    """Serve models and indexes over HTTP: vectors, classes, entities, answers, blanks, search.

    Routes are those of OpenAI (/v1/embeddings), Cohere and Jina (/v1/rerank) and
    text-embeddings-inference (/embed, /predict, /rerank, …), so that their clients work; further
    tasks are at /v1/models/NAME/TASK, indexes at /v1/indexes/NAME. To add and delete documents, a
    request must send the key in the environment variable BERTKIT_ADMIN_KEY.

    SIGTERM and Ctrl-C end it when the running requests are answered; SIGUSR1 loads the models
    again.

    **Examples**

        bertkit serve

        bertkit serve sentiment/ encoder/ --port 8080

        bertkit serve notes.bertkit

        bertkit serve small=encoder/ large=BAAI/bge-large-en-v1.5 --keys keys.txt --host 0.0.0.0

    Args:
        models: Model folders, runs, indexes (NAME.bertkit), or ids of models of the Hub, by the
            name of their folder or file or as NAME=PATH; by default the model that comes with
            bertkit.
    """
    try:
        from bertkit.serving.workers import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("bertkit"):
            raise
        raise MissingExtraError(
            f"the server isn't installed ({error.name} is missing); {describe_install('serve')}"
        ) from None
    run([replace_surrogates(one) for one in models], settings)
